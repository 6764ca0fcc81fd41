#pragma once
// Short ways to build graphs of a node or two.
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/ops/builder.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

class GraphMaker {
 public:
  Graph graph;
  Builder build{graph};

  ValueId input(Shape shape, DType dtype = DType::f32) {
    Value value;
    value.name = "in" + std::to_string(graph.values.size());
    value.dtype = dtype;
    value.shape = std::move(shape);
    value.kind = ValueKind::input;
    return graph.add_value(std::move(value));
  }
  ValueId ints(Shape shape, const std::vector<int64_t>& values, DType dtype = DType::i64) {
    return build.constant(HostTensor::of(dtype, std::move(shape), values));
  }
  ValueId reals(Shape shape, const std::vector<double>& values, DType dtype = DType::f64) {
    return build.constant(HostTensor::of(dtype, std::move(shape), values));
  }

  std::vector<OutputType> infer(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    node.origin = "the_node";
    return infer_node(graph, node);
  }
  Shape shape(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return infer(op, std::move(inputs), std::move(attributes)).at(0).shape;
  }
  // The message of the Error that infer throws; empty where it throws none.
  std::string refusal(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    try {
      infer(op, std::move(inputs), std::move(attributes));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  // Evaluates a node whose operands are constants.
  std::vector<HostTensor> evaluate(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const std::vector<ValueId> outputs = build.add_multi(op, std::move(inputs), std::move(attributes));
    std::map<ValueId, HostTensor> values;
    evaluate_program(graph, Program::micro_step, values);
    std::vector<HostTensor> results;
    for (const ValueId id : outputs) results.push_back(values.at(id));
    return results;
  }
};

inline std::vector<double> doubles(const HostTensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.count(); ++i) result.push_back(tensor.get(i));
  return result;
}

}  // namespace zeroplan
