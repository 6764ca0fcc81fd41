#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "passes/passes.h"
#include "passes/zero/unit_groups.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

constexpr int64_t kUnitAlignment = 64;  // elements, of parameters in a unit and of shards

int64_t shard_elements(int64_t total, int ranks) { return round_up(ceil_div(std::max<int64_t>(total, 1), ranks), kUnitAlignment); }

// Splits a group so that each part's padded bytes stay within the limit; a parameter that is larger stays whole.
std::vector<ParameterGroup> split_to_limit(const Graph& graph, const ParameterGroup& group, int64_t limit, int ranks) {
  if (limit <= 0 || !group.trainable) return {group};
  std::vector<ParameterGroup> parts;
  int64_t end = 0;
  for (int32_t p : group.parameters) {
    const int64_t count = elements(graph.parameters[p].shape), size = dtype_bytes(graph.parameters[p].dtype);
    const int64_t together = checked_mul(checked_mul(shard_elements(round_up(end, kUnitAlignment) + count, ranks), ranks), size);
    if (parts.empty() || together > limit) {
      parts.push_back({{}, group.trainable});
      end = 0;
    }
    parts.back().parameters.push_back(p);
    end = round_up(end, kUnitAlignment) + count;
  }
  return parts;
}

// Name without its last component.
std::string module_of(const std::string& name) {
  const size_t border = name.find_last_of("./");
  return border == std::string::npos ? name : name.substr(0, border);
}

std::string common_module(const Graph& graph, const std::vector<int32_t>& parameters) {
  std::string prefix = graph.parameters[parameters[0]].name;
  for (int32_t p : parameters) {
    const std::string& name = graph.parameters[p].name;
    prefix.erase(std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first, prefix.end());
  }
  const size_t border = prefix.find_last_of("./");
  return border == std::string::npos ? std::string{} : prefix.substr(0, border);
}

// By module name: parameters of the model below it.
using ModuleSizes = std::map<std::string, size_t>;

ModuleSizes module_sizes(const Graph& graph) {
  ModuleSizes sizes;
  for (const Parameter& parameter : graph.parameters)
    for (std::string module = parameter.name; module != module_of(module);) ++sizes[module = module_of(module)];
  return sizes;
}

// The parameter, the module that the unit is, or its first and last module.
std::string unit_name(const Graph& graph, const std::vector<int32_t>& parameters, const ModuleSizes& sizes) {
  const std::string& first = graph.parameters[parameters.front()].name;
  if (graph.parameters[parameters.front()].statistics) return "running statistics";
  if (parameters.size() == 1) return first;
  const std::string module = common_module(graph, parameters);
  if (const auto size = sizes.find(module); size != sizes.end() && size->second == parameters.size()) return module;
  const std::string from = module_of(first), to = module_of(graph.parameters[parameters.back()].name);
  return from == to ? from : from + ".." + to;
}

std::string unique_name(std::string name, std::set<std::string>& taken) {
  const std::string stem = name;
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

// Running statistics are whole on every rank: each makes the same of the same batch.
void place(Unit& unit, int stage, bool statistics) {
  const auto sharded_from = [&](int first_stage) {
    return stage >= first_stage && !statistics ? Placement::sharded : Placement::replicated;
  };
  unit.weights = sharded_from(3);
  unit.gradients = unit.trainable ? sharded_from(2) : unit.weights;
  unit.optimizer = unit.trainable ? sharded_from(1) : unit.weights;
}

Unit make_unit(const Graph& graph, const ParameterGroup& group, const CompileOptions& options, std::string name) {
  Unit unit;
  unit.name = std::move(name);
  unit.dtype = graph.parameters[group.parameters[0]].dtype;
  unit.gradient_dtype = wide_dtype(unit.dtype);
  unit.reduce_dtype = options.wire_dtype(unit.dtype);
  unit.trainable = group.trainable;
  unit.carried = group.trainable && options.one_round();
  int64_t end = 0;
  for (int32_t p : group.parameters) {
    const int64_t count = elements(graph.parameters[p].shape);
    unit.parameters.push_back({p, round_up(end, kUnitAlignment), count});
    end = checked_add(round_up(end, kUnitAlignment), count);
  }
  unit.shard_elements = shard_elements(end, options.ranks);
  unit.padded_elements = checked_mul(unit.shard_elements, options.ranks);
  place(unit, options.stage, group.statistics);
  return unit;
}

}  // namespace

bool partition_units(Graph& graph, const CompileOptions& options) {
  if (graph.parameters.empty() && options.forward_only()) return false;
  if (graph.parameters.empty()) throw Error("the model has no parameter to train; `zeroplan inspect` says why each initializer is none");
  const ModuleSizes sizes = module_sizes(graph);
  std::set<std::string> taken;
  for (const ParameterGroup& group : group_parameters(graph, options))
    for (const ParameterGroup& part : split_to_limit(graph, group, options.reduce_bytes, options.ranks))
      graph.units.push_back(make_unit(graph, part, options, unique_name(unit_name(graph, part.parameters, sizes), taken)));
  const std::vector<int32_t> unit_of = parameter_units(graph);
  for (Value& value : graph.values)
    if (value.kind == ValueKind::parameter) value.unit = unit_of[value.parameter];
  for (const auto& [parameter, gradient] : graph.gradients)
    if (graph.values[gradient].kind == ValueKind::computed) graph.values[gradient].unit = unit_of[parameter];
  return true;
}

}  // namespace zeroplan
