// Parameters, units and what refers to the nodes.
#include "graph/text/parser.h"

namespace zeroplan {

StoredRun Parser::stored_run(Scanner& line) {
  StoredRun run;
  run.initializer = text_field(line, "initializer");
  run.file = text_field(line, "file");
  run.offset = integer_field(line, "offset");
  run.bytes = integer_field(line, "bytes");
  line.expect("stored");
  line.expect("=");
  run.type = located(line, [&] { return parse_stored_type(line.word()); });
  run.varints = line.accept("varints");
  return run;
}

void Parser::parse_parameter(Scanner& line) {
  Parameter parameter;
  parameter.name = line.quoted();
  parameter.dtype = line.dtype();
  parameter.shape = shape(line);
  parameter.statistics = line.accept("statistics");
  parameter.trainable = !parameter.statistics && trainable(line);
  parameter.source = {stored_run(line), {}};
  graph_.parameters.push_back(std::move(parameter));
}

Parameter& Parser::last_parameter(Scanner& line) {
  if (graph_.parameters.empty()) line.fail("no parameter stands above");
  return graph_.parameters.back();
}

void Parser::parse_alias(Scanner& line) {
  ParameterAlias alias;
  alias.initializer = line.quoted();
  alias.transposed = line.accept("transposed");
  last_parameter(line).aliases.push_back(std::move(alias));
}

void Parser::parse_quantized(Scanner& line) {
  Quantization q;
  q.count = integer_field(line, "count");
  q.extent = integer_field(line, "extent");
  q.inner = integer_field(line, "inner");
  q.block = integer_field(line, "block");
  line.expect("scale");
  q.scale = stored_run(line);
  line.expect("zero_point");
  q.zero_point = stored_run(line);
  last_parameter(line).source.quantization = std::move(q);
}

void Parser::parse_split_use(Scanner& line) {
  std::string node = line.quoted();
  last_parameter(line).split_uses.emplace_back(std::move(node), line.index());
}

void Parser::parse_role_reason(Scanner& line) { last_parameter(line).role_reason = line.quoted(); }

void Parser::parse_unit(Scanner& line) {
  Unit unit;
  unit.name = line.quoted();
  unit.dtype = line.dtype();
  line.expect("gradient_dtype");
  line.expect("=");
  unit.gradient_dtype = line.dtype();
  line.expect("reduce_dtype");
  line.expect("=");
  unit.reduce_dtype = line.dtype();
  unit.padded_elements = integer_field(line, "padded_elements");
  unit.shard_elements = integer_field(line, "shard_elements");
  unit.trainable = trainable(line);
  unit.carried = line.accept("carried");
  unit.weights = placement(line, "weights");
  unit.gradients = placement(line, "gradients");
  unit.optimizer = placement(line, "optimizer");
  unit.weights_state = ref_field(line, "weights_state");
  unit.gradient_shard = ref_field(line, "gradient_shard");
  unit.gradient_full = ref_field(line, "gradient_full");
  line.expect("moments");
  line.expect("=");
  unit.moments = refs(line);
  graph_.units.push_back(std::move(unit));
}

void Parser::parse_member(Scanner& line) {
  if (graph_.units.empty()) line.fail("no unit stands above");
  UnitParameter member;
  line.expect("parameter");
  line.expect("=");
  member.parameter = line.index();
  member.offset = integer_field(line, "offset");
  member.elements = integer_field(line, "elements");
  graph_.units.back().parameters.push_back(member);
}

void Parser::parse_inputs(Scanner& line) { graph_.inputs = refs(line); }

void Parser::parse_output(Scanner& line) {
  const std::string name = line.quoted();
  line.expect("=");
  graph_.outputs[name] = ref(line);
}

Loss Parser::loss(Scanner& line) {
  Loss loss;
  loss.sum = ref_field(line, "sum");
  loss.weight = ref_field(line, "weight");
  if (line.accept("scale")) {
    line.expect("=");
    loss.scale = ref(line);
  }
  loss.description = text_field(line, "description");
  return loss;
}

void Parser::parse_loss(Scanner& line) { graph_.loss = loss(line); }

void Parser::parse_eval_loss(Scanner& line) { graph_.eval_loss = loss(line); }

void Parser::parse_gradient(Scanner& line) {
  const int32_t parameter = line.index();
  line.expect("=");
  graph_.gradients[parameter] = ref(line);
}

void Parser::parse_state_update(Scanner& line) {
  StateUpdate update;
  update.program = program(line);
  update.from = ref(line);
  line.expect("=");
  update.to = ref(line);
  graph_.state_updates.push_back(update);
}

void Parser::parse_statistics(Scanner& line) {
  BatchStatistics s;
  s.mean = ref_field(line, "mean");
  s.variance = ref_field(line, "variance");
  s.running_mean = ref_field(line, "running_mean");
  s.running_variance = ref_field(line, "running_variance");
  line.expect("momentum");
  line.expect("=");
  s.momentum = line.number();
  s.recorded = ref_field(line, "recorded");
  graph_.statistics.push_back(s);
}

}  // namespace zeroplan
