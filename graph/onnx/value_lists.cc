#include "graph/onnx/value_lists.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

bool given(const std::vector<ValueId>& inputs, size_t i) { return i < inputs.size() && inputs[i] != kNone; }

constexpr const char* kListOps[] = {"SequenceConstruct", "SequenceEmpty",      "SequenceAt",         "SequenceInsert",
                                    "SequenceErase",     "SequenceLength",     "ConcatFromSequence", "SplitToSequence",
                                    "Optional",          "OptionalHasElement", "OptionalGetElement", "SequenceMap"};

// Lengths of the parts: as listed, or all of one length but perhaps the last.
std::vector<int64_t> part_sizes(const HostTensor& split, int64_t size) {
  std::vector<int64_t> sizes = split.cast(DType::i64).to_ints();
  if (split.shape().empty()) {
    const int64_t each = sizes.at(0);
    if (each < 1) throw Error(fmt::format("its split is {}", each));
    sizes.assign(static_cast<size_t>(size / each), each);
    if (size % each != 0) sizes.push_back(size % each);
  }
  int64_t rest = size;
  for (const int64_t each : sizes) {
    if (each < 0 || each > rest) throw Error(fmt::format("its parts do not add up to {}", size));
    rest -= each;
  }
  if (rest != 0) throw Error(fmt::format("its parts do not add up to {}", size));
  return sizes;
}

}  // namespace

bool makes_or_takes_lists(const OnnxNode& node) {
  return node.domain.empty() && std::any_of(std::begin(kListOps), std::end(kListOps), [&](const char* op) { return node.op == op; });
}

ValueId ValueLists::make(std::vector<ValueId> items) {
  total_ += items.size() + 1;
  if (total_ > kMaxListed) throw Error(fmt::format("the sequences of the model have more than {} elements in all", kMaxListed));
  lists_.push_back(std::move(items));
  return kNothing - static_cast<ValueId>(lists_.size());
}

const std::vector<ValueId>& ValueLists::items(ValueId id) const {
  if (!is_list(id)) throw Error("it is given a tensor or an optional where it takes a sequence");
  return lists_.at(static_cast<size_t>(kNothing - id) - 1);
}

std::optional<ValueId> ValueLists::decode(const OnnxNode& node, const Inputs& inputs) {
  if (!makes_or_takes_lists(node)) {
    if (std::none_of(inputs.begin(), inputs.end(), [](ValueId id) { return id < kNone; })) return {};
    if (node.op == "Identity" && node.domain.empty()) return inputs[0];
    throw Error("it is given a sequence or an optional, but takes tensors alone");
  }
  if (node.op == "SequenceConstruct" || node.op == "SequenceEmpty") return construct(node, inputs);
  if (node.op == "Optional") return wrap(node, inputs);
  if (node.op == "OptionalHasElement") return has_element(node, inputs);
  if (inputs.empty()) throw Error("it is given no sequence or optional");
  if (node.op == "SequenceAt") return at(node, inputs);
  if (node.op == "SequenceInsert") return insert(node, inputs);
  if (node.op == "SequenceErase") return erase(node, inputs);
  if (node.op == "SequenceLength") return length(node, inputs);
  if (node.op == "ConcatFromSequence") return concat(node, inputs);
  if (node.op == "SplitToSequence") return split(node, inputs);
  return get_element(node, inputs);
}

// In a sequence of `size` items, from its end where it is negative; below `places`.
int64_t ValueLists::position(const Inputs& inputs, size_t input, int64_t size, int64_t places) const {
  const ValueId id = tensor(inputs, input);
  if (!build_.is_constant(id)) throw Error("its position depends on the data of the model; it must be known when the model is compiled");
  const HostTensor place = build_.graph().values[id].constant.cast(DType::i64);
  if (place.count() != 1) throw Error(fmt::format("its position has {} elements", place.count()));
  const int64_t given = place.get_int(0), from_start = given < 0 ? given + size : given;
  if (from_start < 0 || from_start >= places) throw Error(fmt::format("its position {} is outside its sequence of {}", given, size));
  return from_start;
}

ValueId ValueLists::tensor(const Inputs& inputs, size_t input) const {
  if (input >= inputs.size() || !is_value(inputs[input])) throw Error(fmt::format("its input {} is no tensor", input));
  return inputs[input];
}

ValueId ValueLists::construct(const OnnxNode&, const Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) tensor(inputs, i);
  return make(inputs);
}

ValueId ValueLists::at(const OnnxNode&, const Inputs& inputs) {
  const std::vector<ValueId>& list = items(inputs[0]);
  const auto size = static_cast<int64_t>(list.size());
  return list[position(inputs, 1, size, size)];
}

ValueId ValueLists::insert(const OnnxNode&, const Inputs& inputs) {
  std::vector<ValueId> list = items(inputs[0]);
  const auto size = static_cast<int64_t>(list.size());
  list.insert(list.begin() + (given(inputs, 2) ? position(inputs, 2, size, size + 1) : size), tensor(inputs, 1));
  return make(std::move(list));
}

ValueId ValueLists::erase(const OnnxNode&, const Inputs& inputs) {
  std::vector<ValueId> list = items(inputs[0]);
  const auto size = static_cast<int64_t>(list.size());
  if (size == 0) throw Error("its sequence is empty");
  list.erase(list.begin() + (given(inputs, 1) ? position(inputs, 1, size, size) : size - 1));
  return make(std::move(list));
}

ValueId ValueLists::length(const OnnxNode&, const Inputs& inputs) {
  return build_.constant(HostTensor::of<int64_t>(DType::i64, {}, {static_cast<int64_t>(items(inputs[0]).size())}));
}

ValueId ValueLists::concat(const OnnxNode& node, const Inputs& inputs) {
  const std::vector<ValueId> list = items(inputs[0]);
  if (list.empty()) throw Error("its sequence is empty");
  const bool fresh = node.integer("new_axis", 0) != 0;
  const auto rank = static_cast<int64_t>(build_.shape(list[0]).size());
  const int64_t axis = normalize_axis(node.integer("axis", 0), fresh ? rank + 1 : rank);
  const std::vector<Term> terms = terms_of(build_, list);
  return (fresh ? stack(terms, axis) : zeroplan::concat(terms, axis)).id();
}

ValueId ValueLists::split(const OnnxNode& node, const Inputs& inputs) {
  const ValueId x = tensor(inputs, 0);
  const Shape shape = build_.shape(x);
  const int64_t axis = normalize_axis(node.integer("axis", 0), static_cast<int64_t>(shape.size()));
  std::vector<ValueId> list;
  if (!given(inputs, 1)) {
    const bool kept = node.integer("keepdims", 1) != 0;
    for (int64_t i = 0; i < shape[axis]; ++i) list.push_back(kept ? part({build_, x}, axis, i, 1).id() : item({build_, x}, axis, i).id());
    return make(std::move(list));
  }
  if (!build_.is_constant(tensor(inputs, 1)))
    throw Error("its split depends on the data of the model; it must be known when the model is compiled");
  int64_t start = 0;
  for (const int64_t size : part_sizes(build_.graph().values[inputs[1]].constant, shape[axis])) {
    list.push_back(part({build_, x}, axis, start, size).id());
    start += size;
  }
  return make(std::move(list));
}

ValueId ValueLists::wrap(const OnnxNode&, const Inputs& inputs) { return given(inputs, 0) ? inputs[0] : kNothing; }

ValueId ValueLists::has_element(const OnnxNode&, const Inputs& inputs) {
  HostTensor has(DType::boolean, {});
  has.set_int(0, given(inputs, 0) && inputs[0] != kNothing);
  return build_.constant(std::move(has));
}

ValueId ValueLists::get_element(const OnnxNode&, const Inputs& inputs) {
  if (!given(inputs, 0) || inputs[0] == kNothing) throw Error("its optional has no value");
  return inputs[0];
}

}  // namespace zeroplan
