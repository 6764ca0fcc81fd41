#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <xxhash.h>

#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "runtime/plan/plan_message.h"

namespace zeroplan {
namespace {

// Names come from the model, where nothing forces them to be text; protobuf strings have to be.
const std::string& text(const std::string& name) {
  const auto* at = reinterpret_cast<const unsigned char*>(name.data());
  const auto* end = at + name.size();
  while (at < end) {
    const int more = *at < 0x80 ? 0 : *at >= 0xC2 && *at < 0xE0 ? 1 : *at >= 0xE0 && *at < 0xF0 ? 2 : *at >= 0xF0 && *at < 0xF5 ? 3 : -1;
    bool good = more >= 0 && end - at > more;
    for (int i = 1; good && i <= more; ++i) good = (at[i] & 0xC0) == 0x80;
    if (good && more >= 2)
      good = !(at[0] == 0xE0 && at[1] < 0xA0) && !(at[0] == 0xED && at[1] > 0x9F) && !(at[0] == 0xF0 && at[1] < 0x90) &&
             !(at[0] == 0xF4 && at[1] > 0x8F);
    if (!good) throw Error(fmt::format("the name '{}' is not UTF-8; rename it", name));
    at += more + 1;
  }
  return name;
}

void put(proto::Operand& to, const Operand& from) {
  to.set_tensor(from.tensor);
  to.set_value(from.value);
}

void put(proto::Pair& to, const std::pair<int32_t, int32_t>& from) {
  to.set_first(from.first);
  to.set_second(from.second);
}

struct PutAttribute {
  proto::Attribute& to;
  void operator()(int64_t v) const { to.set_integer(v); }
  void operator()(double v) const { to.set_real(v); }
  void operator()(const std::string& v) const { to.set_text(v); }
  void operator()(const std::vector<int64_t>& v) const { to.mutable_integers()->mutable_values()->Assign(v.begin(), v.end()); }
};

void put(proto::Attribute& to, const Attributes::Entry& from) {
  to.set_key(std::string(attr_name(from.first)));
  std::visit(PutAttribute{to}, from.second);
}

void put(proto::Tensor& to, const PlanTensor& from) {
  to.set_name(text(from.name));
  to.set_dtype(static_cast<uint32_t>(from.dtype));
  to.mutable_shape()->Assign(from.shape.begin(), from.shape.end());
  to.mutable_strides()->Assign(from.strides.begin(), from.strides.end());
  to.set_kind(static_cast<uint32_t>(from.kind));
  to.set_arena(static_cast<uint32_t>(from.arena));
  to.set_offset(from.offset);
  to.set_per_rank(from.per_rank);
  to.set_unit(from.unit);
  to.set_origin(text(from.origin));
}

void put(proto::Step& to, const Step& from) {
  to.set_kind(static_cast<uint32_t>(from.kind));
  to.set_op(std::string(op_name(from.op)));
  to.set_stream(static_cast<uint32_t>(from.stream));
  to.mutable_waits()->Assign(from.waits.begin(), from.waits.end());
  to.set_records(from.records);
  for (const Operand& o : from.inputs) put(*to.add_inputs(), o);
  for (const Operand& o : from.outputs) put(*to.add_outputs(), o);
  put(*to.mutable_workspace(), from.workspace);
  for (const auto& pair : from.in_place) put(*to.add_in_place(), pair);
  for (const auto& entry : from.attributes.entries()) put(*to.add_attributes(), entry);
  to.set_unit(from.unit);
  to.set_origin(text(from.origin));
  to.set_predicted_us(from.predicted_us);
  to.set_reason(text(from.reason));
}

void put(proto::Program& to, const PlanProgram& from) {
  to.set_program(static_cast<uint32_t>(from.program));
  for (const Step& step : from.steps) put(*to.add_steps(), step);
  for (const Operand& o : from.entry) put(*to.add_entry_state(), o);
  for (const Operand& o : from.exit) put(*to.add_exit_state(), o);
  to.set_predicted_us(from.predicted_us);
}

void put(proto::Value& to, const PlanValue& from) {
  to.set_name(text(from.name));
  to.set_parameter(from.parameter);
}

void put(proto::StoredRun& to, const StoredRun& from) {
  to.set_initializer(text(from.initializer));
  to.set_file(text(from.file));
  to.set_offset(from.offset);
  to.set_bytes(from.bytes);
  to.set_type(static_cast<uint32_t>(from.type));
  to.set_varints(from.varints);
}

void put(proto::Quantization& to, const Quantization& from) {
  put(*to.mutable_scale(), from.scale);
  put(*to.mutable_zero_point(), from.zero_point);
  to.set_count(from.count);
  to.set_extent(from.extent);
  to.set_inner(from.inner);
  to.set_block(from.block);
}

void put(proto::Parameter& to, const PlanParameter& from) {
  const Parameter& p = from.parameter;
  to.set_name(text(p.name));
  to.set_dtype(static_cast<uint32_t>(p.dtype));
  to.mutable_shape()->Assign(p.shape.begin(), p.shape.end());
  to.set_trainable(p.trainable);
  to.set_initializer(text(p.source.initializer));
  to.set_file(text(p.source.file));
  to.set_source_offset(p.source.offset);
  to.set_source_bytes(p.source.bytes);
  to.set_source_type(static_cast<uint32_t>(p.source.type));
  to.set_source_varints(p.source.varints);
  if (p.source.quantization) put(*to.mutable_quantization(), *p.source.quantization);
  for (const ParameterAlias& alias : p.aliases) {
    proto::Alias& a = *to.add_aliases();
    a.set_initializer(text(alias.initializer));
    a.set_transposed(alias.transposed);
  }
  for (const auto& [node, input] : p.split_uses) {
    proto::SplitUse& use = *to.add_split_uses();
    use.set_node(text(node));
    use.set_input(input);
  }
  to.set_role_reason(text(p.role_reason));
  to.set_statistics(p.statistics);
  to.set_unit(from.unit);
  to.set_offset(from.offset);
}

void put(proto::Statistics& to, const PlanStatistics& from) {
  to.set_recorded(from.recorded);
  to.set_mean(from.mean);
  to.set_variance(from.variance);
  to.set_momentum(from.momentum);
}

void put(proto::Unit& to, const PlanUnit& from) {
  to.set_name(text(from.name));
  to.set_dtype(static_cast<uint32_t>(from.dtype));
  for (const UnitParameter& p : from.parameters) {
    proto::UnitParameter& part = *to.add_parameters();
    part.set_parameter(p.parameter);
    part.set_offset(p.offset);
    part.set_elements(p.elements);
  }
  to.set_padded_elements(from.padded_elements);
  to.set_shard_elements(from.shard_elements);
  to.set_trainable(from.trainable);
  to.set_weights(static_cast<uint32_t>(from.weights));
  to.set_gradients(static_cast<uint32_t>(from.gradients));
  to.set_optimizer(static_cast<uint32_t>(from.optimizer));
  to.set_weights_tensor(from.weights_tensor);
  to.set_gradient_tensor(from.gradient_tensor);
  to.mutable_moment_tensors()->Assign(from.moment_tensors.begin(), from.moment_tensors.end());
  to.set_slot_class(from.slot_class);
  to.set_gradient_dtype(static_cast<uint32_t>(from.gradient_dtype));
  to.set_reduce_dtype(static_cast<uint32_t>(from.reduce_dtype));
}

void put(proto::Input& to, const PlanInput& from) {
  to.set_name(text(from.name));
  to.set_dtype(static_cast<uint32_t>(from.dtype));
  to.mutable_shape()->Assign(from.shape.begin(), from.shape.end());
  to.set_sample_axis(from.sample_axis);
  to.set_tensor(from.tensor);
  to.set_limit(from.limit);
  to.set_label(from.label);
  to.set_ignored(from.ignored);
  to.set_has_ignored(from.has_ignored);
  to.set_mask(from.mask);
  to.set_value(from.value);
}

void put(proto::Header& to, const PlanHeader& from) {
  to.set_format(from.format);
  to.set_tool_version(from.tool_version);
  to.set_model_path(text(from.model_path));
  to.set_model_digest(from.model_digest);
  to.set_digest(from.digest);
  to.set_ranks(from.ranks);
  to.set_batch(from.batch);
  to.set_micro_batches(from.micro_batches);
  to.set_stage(from.stage);
  to.set_threads(from.threads);
  to.set_precision(static_cast<uint32_t>(from.precision));
  to.set_optimizer(from.optimizer);
  to.set_momentum(from.momentum);
  to.set_prefetch(from.prefetch);
  to.set_max_live_units(from.max_live_units);
  to.set_device(static_cast<uint32_t>(from.device));
  to.set_reduce(static_cast<uint32_t>(from.reduce));
  to.set_loss(text(from.loss));
  to.set_cost_source(text(from.cost_source));
  for (const auto& [name, value] : from.options) {
    proto::Option& option = *to.add_options();
    option.set_name(text(name));
    option.set_value(text(value));
  }
}

void put(proto::Roles& to, const PlanRoles& from) {
  to.set_metrics(from.metrics);
  to.set_report(from.report);
  to.set_norm_limbs(from.norm_limbs);
  to.set_loss_scale(from.loss_scale);
  to.set_overflows(from.overflows);
  to.set_eval_metrics(from.eval_metrics);
  to.set_eval_report(from.eval_report);
}

void put(proto::SourceNode& to, const SourceNode& from) {
  to.set_op(std::string(op_name(from.op)));
  to.mutable_inputs()->Assign(from.inputs.begin(), from.inputs.end());
  to.mutable_outputs()->Assign(from.outputs.begin(), from.outputs.end());
  for (const auto& entry : from.attributes.entries()) put(*to.add_attributes(), entry);
  to.set_program(static_cast<uint32_t>(from.program));
}

}  // namespace

proto::Plan to_message(const Plan& plan) {
  proto::Plan to;
  put(*to.mutable_header(), plan.header);
  for (const auto& t : plan.tensors) put(*to.add_tensors(), t);
  for (const auto& v : plan.values) put(*to.add_values(), v);
  for (const auto& p : plan.parameters) put(*to.add_parameters(), p);
  for (const auto& u : plan.units) put(*to.add_units(), u);
  for (const auto& i : plan.inputs) put(*to.add_inputs(), i);
  for (const auto& o : plan.outputs) {
    proto::Output& output = *to.add_outputs();
    output.set_name(text(o.name));
    output.set_tensor(o.tensor);
    output.set_sample_axis(o.sample_axis);
    output.set_type(o.type);
  }
  for (const auto& c : plan.constants) {
    proto::Constant& constant = *to.add_constants();
    constant.set_tensor(c.tensor);
    constant.set_content(c.bytes);
  }
  to.mutable_arena_bytes()->Assign(plan.arena_bytes.begin(), plan.arena_bytes.end());
  to.mutable_transient_lower_bound()->Assign(plan.transient_lower_bound.begin(), plan.transient_lower_bound.end());
  for (const auto& p : plan.programs) put(*to.add_programs(), p);
  put(*to.mutable_roles(), plan.roles);
  for (const auto& n : plan.source) put(*to.add_source(), n);
  for (const auto& g : plan.gradients) put(*to.add_gradients(), g);
  for (const auto& line : plan.report_lines) to.add_report_lines(text(line));
  for (const auto& s : plan.statistics) put(*to.add_statistics(), s);
  return to;
}

namespace {

std::string message_bytes(const proto::Plan& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    check(message.SerializeToCodedStream(&coded), "a plan can be serialised");
  }
  return bytes;
}

std::string digest_of(proto::Plan message) {
  message.mutable_header()->clear_digest();
  const std::string bytes = message_bytes(message);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string serialize_plan(const Plan& plan) { return message_bytes(to_message(plan)); }

std::string plan_digest(const Plan& plan) { return digest_of(to_message(plan)); }

std::string common_digest(const Plan& plan) {
  proto::Plan message = to_message(plan);
  message.mutable_header()->clear_model_path();
  return digest_of(std::move(message));
}

}  // namespace zeroplan
