#include "tests/fuzz/libfuzzer/mutate_node.h"

#include <onnx/defs/schema.h>

#include "tests/fuzz/libfuzzer/mutate_tensor.h"

namespace zeroplan {
namespace {

using Attribute = onnx::AttributeProto;

const std::vector<onnx::OpSchema>& schemas() {
  static const std::vector<onnx::OpSchema> all = onnx::OpSchemaRegistry::get_all_schemas();
  return all;
}

// Names that a node of the graph may read.
std::vector<std::string> values_of(const onnx::GraphProto& graph) {
  std::vector<std::string> names = {""};
  for (const auto& input : graph.input()) names.push_back(input.name());
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (const auto& node : graph.node()) names.insert(names.end(), node.output().begin(), node.output().end());
  return names;
}

const std::string& word(Choice& choice) {
  static const std::vector<std::string> words = {"",
                                                 "constant",
                                                 "reflect",
                                                 "edge",
                                                 "wrap",
                                                 "nearest",
                                                 "linear",
                                                 "cubic",
                                                 "zeros",
                                                 "border",
                                                 "reflection",
                                                 "SAME_UPPER",
                                                 "SAME_LOWER",
                                                 "VALID",
                                                 "NOTSET",
                                                 "none",
                                                 "sum",
                                                 "mean",
                                                 "add",
                                                 "mul",
                                                 "max",
                                                 "min",
                                                 "bidirectional",
                                                 "reverse",
                                                 "forward",
                                                 "floor",
                                                 "ceil",
                                                 "asymmetric",
                                                 "align_corners",
                                                 "half_pixel_symmetric",
                                                 "tf_crop_and_resize",
                                                 "not_larger",
                                                 "not_smaller",
                                                 "LEFT",
                                                 "RIGHT",
                                                 "TF",
                                                 "IDF",
                                                 "TFIDF",
                                                 "ij,jk->ik",
                                                 "...ij,...jk->...ik",
                                                 "ii->i",
                                                 "ij->ji",
                                                 "i,i->",
                                                 "DCR",
                                                 "CRD",
                                                 "tanh",
                                                 "output_half_pixel",
                                                 "nesterov"};
  return choice.of(words);
}

template <typename List, typename Draw>
void change_list(Choice& choice, List& list, Draw&& draw) {
  switch (choice.below(4)) {
    case 0: return list.Add(draw());
    case 1: return choice.drop(list);
    default:
      if (!list.empty()) list.Set(choice.below(list.size()), draw());
  }
}

void change_attribute(Choice& choice, Attribute& attribute) {
  switch (attribute.type()) {
    case Attribute::INT: return attribute.set_i(choice.integer());
    case Attribute::FLOAT: return attribute.set_f(static_cast<float>(choice.number()));
    case Attribute::STRING: return attribute.set_s(word(choice));
    case Attribute::TENSOR: return change_tensor(choice, *attribute.mutable_t());
    case Attribute::INTS: return change_list(choice, *attribute.mutable_ints(), [&] { return choice.integer(); });
    case Attribute::FLOATS: return change_list(choice, *attribute.mutable_floats(), [&] { return static_cast<float>(choice.number()); });
    case Attribute::STRINGS: {
      if (choice.below(2) == 0 || attribute.strings().empty()) return attribute.add_strings(word(choice));
      return attribute.set_strings(choice.below(attribute.strings_size()), word(choice));
    }
    default: return;
  }
}

// An attribute that the operator has, with some value.
void add_attribute(Choice& choice, onnx::NodeProto& node) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (!schema || schema->attributes().empty()) return;
  auto at = schema->attributes().begin();
  std::advance(at, choice.below(static_cast<int>(schema->attributes().size())));
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == at->first) return change_attribute(choice, *node.mutable_attribute(i));
  Attribute& added = *node.add_attribute();
  added.set_name(at->first);
  added.set_type(static_cast<Attribute::AttributeType>(at->second.type));
  for (int values = 1 + choice.below(4); values > 0; --values) change_attribute(choice, added);
}

void change_edges(Choice& choice, onnx::GraphProto& graph, onnx::NodeProto& node) {
  const std::vector<std::string> values = values_of(graph);
  switch (choice.below(6)) {
    case 0: return node.add_input(choice.of(values));
    case 1:
      if (node.input_size()) node.mutable_input()->RemoveLast();
      return;
    case 2: return node.add_output("extra" + std::to_string(choice.below(1000)));
    case 3:
      if (graph.output_size()) graph.mutable_output(choice.below(graph.output_size()))->set_name(choice.of(values));
      return;
    case 4:
      if (node.output_size() > 1) node.mutable_output()->RemoveLast();
      return;
    default:
      if (node.input_size()) node.set_input(choice.below(node.input_size()), choice.of(values));
  }
}

// Another operator at the place of the old one; half of the time its own attributes go.
void change_operator(Choice& choice, onnx::NodeProto& node) {
  const onnx::OpSchema& schema = choice.of(schemas());
  node.set_op_type(schema.Name());
  node.set_domain(schema.domain());
  if (choice.below(2)) node.clear_attribute();
}

// A copy behind the node, which reads what the node gives.
void repeat(Choice& choice, onnx::GraphProto& graph, int at) {
  onnx::NodeProto copy = graph.node(at);
  if (copy.output().empty() || copy.input().empty()) return;
  const std::string old = copy.output(0), fresh = "copy" + std::to_string(choice.below(100000));
  copy.set_input(choice.below(copy.input_size()), old);
  for (int i = 0; i < copy.output_size(); ++i) copy.set_output(i, i == 0 ? fresh : fresh + "." + std::to_string(i));
  auto& nodes = *graph.mutable_node();
  for (int i = at + 1; i < nodes.size(); ++i)
    for (auto& input : *nodes[i].mutable_input())
      if (input == old) input = fresh;
  for (auto& output : *graph.mutable_output())
    if (output.name() == old) output.set_name(fresh);
  *nodes.Add() = std::move(copy);
  for (int i = nodes.size() - 1; i > at + 1; --i) nodes.SwapElements(i, i - 1);
}

}  // namespace

void change_nodes(Choice& choice, onnx::GraphProto& graph) {
  if (graph.node().empty()) return;
  const int at = choice.below(graph.node_size());
  onnx::NodeProto& node = *graph.mutable_node(at);
  switch (choice.below(12)) {
    case 0: return change_operator(choice, node);
    case 1: return repeat(choice, graph, at);
    case 2:
      if (graph.node_size() > 1) graph.mutable_node()->DeleteSubrange(at, 1);
      return;
    case 3:
    case 4: return change_edges(choice, graph, node);
    case 5:
    case 6:
    case 7: return add_attribute(choice, node);
    case 8: return choice.drop(*node.mutable_attribute());
    default:
      if (node.attribute_size()) change_attribute(choice, *node.mutable_attribute(choice.below(node.attribute_size())));
  }
}

}  // namespace zeroplan
