#include <fmt/format.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include "base/checked.h"
#include "graph/ops/op_def.h"
#include "runtime/plan/parse_check.h"
#include "runtime/plan/plan_message.h"

namespace zeroplan {
namespace {

Operand get_operand(const Field& at, const proto::Operand& from, const PlanSizes& sizes) {
  return {at.sub("tensor").index(from.tensor(), sizes.tensors), at.sub("value").index(from.value(), sizes.values)};
}

Attributes get_attributes(const Field& at, const google::protobuf::RepeatedPtrField<proto::Attribute>& from) {
  Attributes attributes;
  for (const proto::Attribute& a : from) {
    const Attr key = at.guard([&] { return parse_attr(a.key()); });
    if (attributes.has(key)) at.fail(fmt::format("attribute '{}' is given twice", a.key()));
    switch (a.value_case()) {
      case proto::Attribute::kInteger: attributes.set(key, a.integer()); break;
      case proto::Attribute::kReal: attributes.set(key, a.real()); break;
      case proto::Attribute::kText: attributes.set(key, a.text()); break;
      case proto::Attribute::kIntegers:
        attributes.set(key, std::vector<int64_t>(a.integers().values().begin(), a.integers().values().end()));
        break;
      case proto::Attribute::VALUE_NOT_SET: at.fail(fmt::format("attribute '{}' has no value", a.key()));
    }
  }
  return attributes;
}

PlanTensor get_tensor(const Field& at, const proto::Tensor& from, const PlanSizes& sizes) {
  PlanTensor to;
  to.name = from.name();
  to.dtype = at.sub("dtype").dtype(from.dtype());
  to.shape = at.sub("shape").shape(from.shape());
  if (from.strides_size() != from.shape_size()) at.sub("strides").fail("not one stride per axis");
  to.strides.assign(from.strides().begin(), from.strides().end());
  to.kind = at.sub("kind").enumeration<TensorKind>(from.kind(), 12);
  to.arena = at.sub("arena").enumeration<Arena>(from.arena(), kArenas);
  to.offset = at.sub("offset").range(from.offset(), 0, kMaxBytes);
  to.per_rank = from.per_rank();
  to.unit = at.sub("unit").index(from.unit(), sizes.units);
  if (to.per_rank && to.unit == kNone) at.sub("unit").fail("a per-rank tensor needs a unit");
  to.origin = from.origin();
  return to;
}

Step get_step(const Field& at, const proto::Step& from, const PlanSizes& sizes, int index) {
  Step to;
  to.kind = at.sub("kind").enumeration<StepKind>(from.kind(), 7);
  to.op = at.sub("op").guard([&] { return parse_op(from.op()); });
  to.stream = at.sub("stream").enumeration<StreamKind>(from.stream(), kStreams);
  for (int32_t wait : from.waits()) to.waits.push_back(at.sub("waits").range(wait, 0, std::max(index - 1, 0)));
  if (index == 0 && !to.waits.empty()) at.sub("waits").fail("the first step cannot wait");
  to.records = from.records();
  for (const auto& o : from.inputs()) to.inputs.push_back(get_operand(at.sub("inputs"), o, sizes));
  for (const auto& o : from.outputs()) to.outputs.push_back(get_operand(at.sub("outputs"), o, sizes));
  to.workspace = get_operand(at.sub("workspace"), from.workspace(), sizes);
  if (!from.has_workspace()) at.sub("workspace").fail("missing");
  for (const auto& pair : from.in_place()) {
    const Field field = at.sub("in_place");
    to.in_place.emplace_back(field.index_not_none(pair.first(), to.outputs.size()), field.index_not_none(pair.second(), to.inputs.size()));
  }
  to.attributes = get_attributes(at.sub("attributes"), from.attributes());
  to.unit = at.sub("unit").index(from.unit(), sizes.units);
  to.origin = from.origin();
  to.predicted_us = at.sub("predicted_us").time(from.predicted_us());
  to.reason = from.reason();
  return to;
}

PlanProgram get_program(const Field& at, const proto::Program& from, const PlanSizes& sizes) {
  PlanProgram to;
  to.program = at.sub("program").enumeration<Program>(from.program(), kPrograms);
  to.steps.reserve(from.steps_size());
  for (int i = 0; i < from.steps_size(); ++i) to.steps.push_back(get_step(at.sub("steps", i), from.steps(i), sizes, i));
  for (const auto& o : from.entry_state()) to.entry.push_back(get_operand(at.sub("entry_state"), o, sizes));
  for (const auto& o : from.exit_state()) to.exit.push_back(get_operand(at.sub("exit_state"), o, sizes));
  to.predicted_us = at.sub("predicted_us").time(from.predicted_us());
  return to;
}

StoredType get_stored_type(const Field& at, uint32_t from) { return at.enumeration<StoredType>(from, std::size(kStoredTypes)); }

StoredRun get_run(const Field& at, const proto::StoredRun& from) {
  return {from.initializer(),
          from.file(),
          at.sub("offset").range(from.offset(), 0, kMaxBytes),
          at.sub("bytes").range(from.bytes(), 0, kMaxBytes),
          get_stored_type(at.sub("type"), from.type()),
          from.varints()};
}

Quantization get_quantization(const Field& at, const proto::Quantization& from) {
  return {get_run(at.sub("scale"), from.scale()),
          get_run(at.sub("zero_point"), from.zero_point()),
          at.sub("count").range(from.count(), 1, kMaxBytes),
          at.sub("extent").range(from.extent(), 1, kMaxBytes),
          at.sub("inner").range(from.inner(), 1, kMaxBytes),
          at.sub("block").range(from.block(), 0, kMaxBytes)};
}

PlanParameter get_parameter(const Field& at, const proto::Parameter& from, const PlanSizes& sizes) {
  PlanParameter to;
  Parameter& p = to.parameter;
  p.name = from.name();
  p.dtype = at.sub("dtype").dtype(from.dtype());
  p.shape = at.sub("shape").shape(from.shape());
  p.trainable = from.trainable();
  p.source.initializer = from.initializer();
  p.source.file = from.file();
  p.source.offset = at.sub("source_offset").range(from.source_offset(), 0, kMaxBytes);
  p.source.bytes = at.sub("source_bytes").range(from.source_bytes(), 0, kMaxBytes);
  p.source.type = get_stored_type(at.sub("source_type"), from.source_type());
  p.source.varints = from.source_varints();
  if (from.has_quantization()) p.source.quantization = get_quantization(at.sub("quantization"), from.quantization());
  for (const auto& alias : from.aliases()) p.aliases.push_back({alias.initializer(), alias.transposed()});
  for (const auto& use : from.split_uses()) p.split_uses.emplace_back(use.node(), use.input());
  p.role_reason = from.role_reason();
  p.statistics = from.statistics();
  to.unit = at.sub("unit").index(from.unit(), sizes.units);
  to.offset = at.sub("offset").range(from.offset(), 0, kMaxBytes);
  return to;
}

PlanStatistics get_statistics(const Field& at, const proto::Statistics& from, const PlanSizes& sizes) {
  return {at.sub("recorded").index_not_none(from.recorded(), sizes.tensors), at.sub("mean").index_not_none(from.mean(), sizes.parameters),
          at.sub("variance").index_not_none(from.variance(), sizes.parameters), from.momentum()};
}

PlanUnit get_unit(const Field& at, const proto::Unit& from, const PlanSizes& sizes) {
  PlanUnit to;
  to.name = from.name();
  to.dtype = at.sub("dtype").dtype(from.dtype());
  for (const auto& p : from.parameters()) {
    const Field field = at.sub("parameters");
    to.parameters.push_back({field.index_not_none(p.parameter(), sizes.parameters), field.range(p.offset(), 0, kMaxBytes),
                             field.range(p.elements(), 0, kMaxBytes)});
  }
  to.padded_elements = at.sub("padded_elements").range(from.padded_elements(), 0, kMaxBytes);
  to.shard_elements = at.sub("shard_elements").range(from.shard_elements(), 0, kMaxBytes);
  to.trainable = from.trainable();
  to.weights = at.sub("weights").enumeration<Placement>(from.weights(), 2);
  to.gradients = at.sub("gradients").enumeration<Placement>(from.gradients(), 2);
  to.optimizer = at.sub("optimizer").enumeration<Placement>(from.optimizer(), 2);
  to.weights_tensor = at.sub("weights_tensor").index(from.weights_tensor(), sizes.tensors);
  to.gradient_tensor = at.sub("gradient_tensor").index(from.gradient_tensor(), sizes.tensors);
  for (int32_t t : from.moment_tensors()) to.moment_tensors.push_back(at.sub("moment_tensors").index_not_none(t, sizes.tensors));
  to.slot_class = at.sub("slot_class").range(from.slot_class(), -1, 1 << 20);
  to.gradient_dtype = at.sub("gradient_dtype").dtype(from.gradient_dtype());
  to.reduce_dtype = at.sub("reduce_dtype").dtype(from.reduce_dtype());
  return to;
}

PlanInput get_input(const Field& at, const proto::Input& from, const PlanSizes& sizes) {
  PlanInput to;
  to.name = from.name();
  to.dtype = at.sub("dtype").dtype(from.dtype());
  to.shape = at.sub("shape").shape(from.shape());
  to.sample_axis = at.sub("sample_axis").range(from.sample_axis(), -1, from.shape_size() - 1);
  to.tensor = at.sub("tensor").index_not_none(from.tensor(), sizes.tensors);
  to.limit = at.sub("limit").range(from.limit(), -1, INT64_MAX);
  to.label = from.label();
  to.ignored = from.ignored();
  to.has_ignored = from.has_ignored();
  to.mask = from.mask();
  to.value = at.sub("value").index(from.value(), sizes.values);
  return to;
}

PlanOutput get_output(const Field& at, const proto::Output& from, const PlanSizes& sizes) {
  return {from.name(), at.sub("tensor").index_not_none(from.tensor(), sizes.tensors),
          static_cast<int>(at.sub("sample_axis").range(from.sample_axis(), -1, kMaxRank)), from.type()};
}

PlanHeader get_header(const Field& at, const proto::Header& from) {
  PlanHeader to;
  to.format = from.format();
  to.tool_version = from.tool_version();
  to.model_path = from.model_path();
  to.model_digest = from.model_digest();
  to.digest = from.digest();
  to.ranks = at.sub("ranks").range(from.ranks(), 1, kMaxRanks);
  to.batch = at.sub("batch").range(from.batch(), 1, kMaxCount);
  to.micro_batches = at.sub("micro_batches").range(from.micro_batches(), 1, kMaxCount);
  to.stage = at.sub("stage").range(from.stage(), 0, 3);
  to.threads = at.sub("threads").range(from.threads(), 1, kMaxThreads);
  to.precision = at.sub("precision").dtype(from.precision());
  to.optimizer = from.optimizer();
  to.momentum = from.momentum();
  to.prefetch = at.sub("prefetch").range(from.prefetch(), 0, 1 << 20);
  to.max_live_units = at.sub("max_live_units").range(from.max_live_units(), 0, 1 << 20);
  to.device = at.sub("device").enumeration<DeviceKind>(from.device(), 2);
  to.reduce = at.sub("reduce").enumeration<ReduceMode>(from.reduce(), 2);
  to.loss = from.loss();
  to.cost_source = from.cost_source();
  for (const auto& option : from.options()) to.options.emplace_back(option.name(), option.value());
  return to;
}

SourceNode get_source(const Field& at, const proto::SourceNode& from, const PlanSizes& sizes) {
  SourceNode to;
  to.op = at.sub("op").guard([&] { return parse_op(from.op()); });
  for (int32_t v : from.inputs()) to.inputs.push_back(at.sub("inputs").index(v, sizes.values));
  for (int32_t v : from.outputs()) to.outputs.push_back(at.sub("outputs").index(v, sizes.values));
  to.attributes = get_attributes(at.sub("attributes"), from.attributes());
  to.program = at.sub("program").enumeration<Program>(from.program(), kPrograms);
  return to;
}

void get_sizes(const Field& at, const proto::Plan& from, Plan& to) {
  if (from.arena_bytes_size() != kArenas) at.sub("arena_bytes").fail("not one entry per arena");
  if (from.transient_lower_bound_size() != kPrograms) at.sub("transient_lower_bound").fail("not one entry per program");
  for (int i = 0; i < kArenas; ++i) to.arena_bytes[i] = at.sub("arena_bytes", i).range(from.arena_bytes(i), 0, kMaxBytes);
  for (int i = 0; i < kPrograms; ++i)
    to.transient_lower_bound[i] = at.sub("transient_lower_bound", i).range(from.transient_lower_bound(i), 0, kMaxBytes);
}

PlanRoles get_roles(const Field& at, const proto::Roles& from, const PlanSizes& sizes) {
  const auto tensor = [&](const char* name, int32_t value) { return at.sub(name).index(value, sizes.tensors); };
  return {.metrics = tensor("metrics", from.metrics()),
          .report = tensor("report", from.report()),
          .norm_limbs = tensor("norm_limbs", from.norm_limbs()),
          .loss_scale = tensor("loss_scale", from.loss_scale()),
          .overflows = tensor("overflows", from.overflows()),
          .eval_metrics = tensor("eval_metrics", from.eval_metrics()),
          .eval_report = tensor("eval_report", from.eval_report())};
}

Plan from_message(const proto::Plan& from, const Field& at) {
  const PlanSizes sizes{static_cast<size_t>(from.tensors_size()), static_cast<size_t>(from.values_size()),
                        static_cast<size_t>(from.parameters_size()), static_cast<size_t>(from.units_size())};
  Plan to;
  to.header = get_header(at.sub("header"), from.header());
  if (!from.has_roles()) at.sub("roles").fail("missing");
  to.roles = get_roles(at.sub("roles"), from.roles(), sizes);
  get_sizes(at, from, to);
  for (int i = 0; i < from.tensors_size(); ++i) to.tensors.push_back(get_tensor(at.sub("tensors", i), from.tensors(i), sizes));
  for (int i = 0; i < from.values_size(); ++i)
    to.values.push_back({from.values(i).name(), at.sub("values", i).sub("parameter").index(from.values(i).parameter(), sizes.parameters)});
  for (int i = 0; i < from.parameters_size(); ++i)
    to.parameters.push_back(get_parameter(at.sub("parameters", i), from.parameters(i), sizes));
  for (int i = 0; i < from.units_size(); ++i) to.units.push_back(get_unit(at.sub("units", i), from.units(i), sizes));
  for (int i = 0; i < from.inputs_size(); ++i) to.inputs.push_back(get_input(at.sub("inputs", i), from.inputs(i), sizes));
  for (int i = 0; i < from.outputs_size(); ++i) to.outputs.push_back(get_output(at.sub("outputs", i), from.outputs(i), sizes));
  for (int i = 0; i < from.constants_size(); ++i)
    to.constants.push_back(
        {at.sub("constants", i).sub("tensor").index_not_none(from.constants(i).tensor(), sizes.tensors), from.constants(i).content()});
  for (int i = 0; i < from.programs_size(); ++i) {
    to.programs.push_back(get_program(at.sub("programs", i), from.programs(i), sizes));
    if (i > 0 && to.programs[i].program <= to.programs[i - 1].program)
      at.sub("programs", i).sub("program").fail("programs are not in order");
  }
  for (int i = 0; i < from.source_size(); ++i) to.source.push_back(get_source(at.sub("source", i), from.source(i), sizes));
  for (int i = 0; i < from.gradients_size(); ++i) {
    const Field field = at.sub("gradients", i);
    to.gradients.emplace_back(field.index_not_none(from.gradients(i).first(), sizes.parameters),
                              field.index_not_none(from.gradients(i).second(), sizes.values));
  }
  for (int i = 0; i < from.statistics_size(); ++i)
    to.statistics.push_back(get_statistics(at.sub("statistics", i), from.statistics(i), sizes));
  to.report_lines.assign(from.report_lines().begin(), from.report_lines().end());
  return to;
}

}  // namespace

Plan parse_plan(const std::string& bytes, const std::string& name) {
  const Field root(nullptr, name.c_str());
  proto::Plan message;
  const google::protobuf::LogSilencer silence;  // the Error says it
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)));
  if (bytes.size() >= INT32_MAX) root.fail("larger than 2 GiB, which no plan is");
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    root.fail("not a zeroplan plan, or cut off: the file is not a readable plan message; compile the model again");
  if (!message.has_header() || message.header().format() <= 0)
    root.sub("header").sub("format").fail("missing: this is not a zeroplan plan; compile the model again");
  if (message.header().format() != kPlanFormat)
    root.sub("header").sub("format").fail(
        fmt::format("is {}, this version reads {}; compile the model again", message.header().format(), kPlanFormat));
  return from_message(message, root);
}

}  // namespace zeroplan
