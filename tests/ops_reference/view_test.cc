// Geometry of views against their evaluators: the strided window must show what a copy would hold.
#include <gtest/gtest.h>

#include "tests/op_cases/cases.h"
#include "tests/ops_reference/graph_maker.h"

namespace zeroplan {
namespace {

using Ints = std::vector<int64_t>;

// Elements of the window over `storage`, in row-major order of `shape`.
Ints window(const Ints& storage, const Shape& shape, const Strides& strides, int64_t offset) {
  Ints result;
  Ints index(shape.size(), 0);
  for (int64_t n = 0; n < elements(shape); ++n) {
    int64_t at = offset;
    for (size_t i = 0; i < shape.size(); ++i) at += index[i] * strides[i];
    result.push_back(storage.at(at));
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
  return result;
}

// Applies the node to a window of `storage` both ways; false where no view is possible.
bool same_as_copy(const Ints& storage, const Shape& shape, const Strides& strides, OpKind op, Attributes attributes) {
  GraphMaker g;
  const ValueId x = g.ints(shape, window(storage, shape, strides, 0));
  const HostTensor expected = g.evaluate(op, {x}, std::move(attributes))[0];
  Strides out;
  int64_t offset = -1;
  bool possible = false;
  op_def(op).view(g.graph.nodes.back(), 0, shape, strides, out, offset, possible);
  if (!possible) return false;
  EXPECT_EQ(window(storage, expected.shape(), out, offset), expected.to_ints());
  return true;
}

Ints numbers(int64_t count) {
  Ints result;
  for (int64_t i = 0; i < count; ++i) result.push_back(i);
  return result;
}

TEST(View, ReshapeOfContiguousIsAlwaysPossible) {
  for (const Shape& shape : {Shape{6, 4}, Shape{2, 12}, Shape{1, 24, 1}, Shape{2, 3, 2, 2}, Shape{24}})
    EXPECT_TRUE(same_as_copy(numbers(24), {2, 3, 4}, {12, 4, 1}, OpKind::reshape, {{Attr::shape, shape}}));
}

TEST(View, ReshapeOfStrided) {
  // [2,3,4] with its axes swapped to [3,2,4].
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::reshape, {{Attr::shape, Ints{3, 2, 2, 2}}}));
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::reshape, {{Attr::shape, Ints{3, 1, 2, 4, 1}}}));
  EXPECT_FALSE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::reshape, {{Attr::shape, Ints{6, 4}}}));
  EXPECT_FALSE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::reshape, {{Attr::shape, Ints{3, 8}}}));
  // Every second row of a matrix, and a broadcast axis.
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 4}, {8, 1}, OpKind::reshape, {{Attr::shape, Ints{3, 2, 2}}}));
  EXPECT_FALSE(same_as_copy(numbers(24), {3, 4}, {8, 1}, OpKind::reshape, {{Attr::shape, Ints{12}}}));
  EXPECT_TRUE(same_as_copy(numbers(4), {6, 4}, {0, 1}, OpKind::reshape, {{Attr::shape, Ints{2, 3, 4}}}));
  EXPECT_FALSE(same_as_copy(numbers(4), {6, 4}, {0, 1}, OpKind::reshape, {{Attr::shape, Ints{24}}}));
}

TEST(View, TransposeSliceBroadcastOfStrided) {
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::transpose, {{Attr::permutation, Ints{2, 0, 1}}}));
  const Attributes part = {{Attr::shape, Ints{2, 1, 2}}, {Attr::starts, Ints{2, 1, 0}}, {Attr::steps, Ints{-2, 1, 3}}};
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::slice, part));
  const Attributes nothing = {{Attr::shape, Ints{0, 2, 4}}, {Attr::starts, Ints{3, 0, 0}}, {Attr::steps, Ints{1, 1, 1}}};
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 2, 4}, {4, 12, 1}, OpKind::slice, nothing));
  EXPECT_TRUE(same_as_copy(numbers(24), {3, 1, 2}, {4, 1, 12}, OpKind::broadcast, {{Attr::shape, Ints{2, 3, 5, 2}}}));
}

TEST(View, AttributesThatDoNotFitAreRefused) {
  Strides strides;
  int64_t offset = 0;
  bool possible = false;
  const auto view = [&](OpKind op, Attributes attributes) {
    Node node;
    node.op = op;
    node.attributes = std::move(attributes);
    op_def(op).view(node, 0, {2, 3}, {3, 1}, strides, offset, possible);
  };
  EXPECT_THROW(view(OpKind::reshape, {{Attr::shape, Ints{7}}}), Error);
  EXPECT_THROW(view(OpKind::transpose, {{Attr::permutation, Ints{0, 2}}}), Error);
  EXPECT_THROW(view(OpKind::broadcast, {{Attr::shape, Ints{3}}}), Error);
  EXPECT_THROW(view(OpKind::slice, {{Attr::shape, Ints{2, 2}}, {Attr::starts, Ints{0, 2}}, {Attr::steps, Ints{1, 1}}}), Error);
}

TEST(View, UnitViewGivesEachParameter) {
  GraphMaker g;
  for (const Shape& shape : {Shape{2, 3}, Shape{5}}) {
    Parameter parameter;
    parameter.shape = shape;
    g.graph.parameters.push_back(parameter);
  }
  Unit unit;
  unit.parameters = {{0, 0, 6}, {1, 64, 5}};
  unit.padded_elements = 128;
  unit.shard_elements = 64;
  g.graph.units.push_back(unit);
  Node node;
  node.op = OpKind::unit_view;
  node.inputs = {g.input({128})};
  node.unit = 0;
  const auto types = infer_node(g.graph, node);
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].shape, (Shape{2, 3}));
  node.inputs = {g.input({64})};
  EXPECT_THROW(infer_node(g.graph, node), Error);
}

}  // namespace
}  // namespace zeroplan
