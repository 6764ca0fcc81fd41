// Order, movement, scatters and constants of every integer type, with the ends of its range.
#include <gtest/gtest.h>

#include "base/type_name.h"
#include "tests/decoders/integer_types.h"

namespace zeroplan {
namespace {

TEST(IntegerMoves, PlacesAndOrder) {
  for (const DType dtype : kIntegers) {
    const Whole low = lowest(dtype), high = highest(dtype);
    const HostTensor x = tensor(dtype, {6}, {5, high, low, high / 2 + 1, low, high});
    expect_outputs(OneNode("ArgMax").input(x).set("keepdims", 0), {integers({}, {1})}, name_of("ArgMax", dtype));
    expect_outputs(OneNode("ArgMax").input(x).set("keepdims", 0).set("select_last_index", 1), {integers({}, {5})},
                   name_of("ArgMax", dtype));
    expect_outputs(OneNode("ArgMin").input(x).set("keepdims", 0), {integers({}, {2})}, name_of("ArgMin", dtype));
    const HostTensor k = integers({1}, {4});
    expect_outputs(OneNode("TopK").input(x).constant(k).outputs(2),
                   {tensor(dtype, {4}, {high, high, high / 2 + 1, 5}), integers({4}, {1, 5, 3, 0})}, name_of("TopK", dtype));
    expect_outputs(OneNode("TopK").input(x).constant(k).outputs(2).set("largest", 0),
                   {tensor(dtype, {4}, {low, low, 5, high / 2 + 1}), integers({4}, {2, 4, 0, 3})}, name_of("TopK", dtype));
    expect_outputs(OneNode("CumSum").input(x).constant(integers({}, {0})),
                   {tensor(dtype, {6},
                           {5, 5 + high, 5 + high + low, 5 + high + low + high / 2 + 1, 5 + high + 2 * low + high / 2 + 1,
                            5 + 2 * high + 2 * low + high / 2 + 1})},
                   name_of("CumSum", dtype));
    expect_outputs(OneNode("Unique").constant(x), {tensor(dtype, {4}, {low, 5, high / 2 + 1, high})}, name_of("Unique", dtype));
  }
}

TEST(IntegerMoves, Movement) {
  for (const DType dtype : kIntegers) {
    const Whole low = lowest(dtype), high = highest(dtype);
    const HostTensor x = tensor(dtype, {2, 2}, {low, high, 1, high / 2 + 1}), some = integers({2, 1}, {1, 0});
    const auto tensor_of = [&](const Shape& shape, const Numbers& numbers) {
      return std::vector<HostTensor>{tensor(dtype, shape, numbers)};
    };
    const auto name = [&](const char* op) { return name_of(op, dtype); };
    const HostTensor one = tensor(dtype, {}, {high});
    expect_outputs(OneNode("Clip").input(x).input(tensor(dtype, {}, {low + 1})).input(tensor(dtype, {}, {high - 1})),
                   tensor_of({2, 2}, {low + 1, high - 1, std::max<Whole>(1, low + 1), high / 2 + 1}), name("Clip"));
    expect_outputs(OneNode("Where").input(booleans({2}, {1, 0})).input(x).input(one), tensor_of({2, 2}, {low, high, 1, high}),
                   name("Where"));
    expect_outputs(OneNode("Gather").input(x).input(integers({1}, {1})), tensor_of({1, 2}, {1, high / 2 + 1}), name("Gather"));
    expect_outputs(OneNode("GatherElements").input(x).input(some).set("axis", 1), tensor_of({2, 1}, {high, 1}), name("GatherElements"));
    expect_outputs(OneNode("GatherND").input(x).input(integers({1, 2}, {1, 1})), tensor_of({1}, {high / 2 + 1}), name("GatherND"));
    expect_outputs(OneNode("Pad").input(x).constant(integers({4}, {0, 1, 0, 0})).input(one),
                   tensor_of({2, 3}, {high, low, high, high, 1, high / 2 + 1}), name("Pad"));
    expect_outputs(OneNode("Pad").input(x).constant(integers({4}, {0, 1, 0, 0})), tensor_of({2, 3}, {0, low, high, 0, 1, high / 2 + 1}),
                   name("Pad"));
    expect_outputs(OneNode("Tile").input(x).constant(integers({2}, {1, 2})),
                   tensor_of({2, 4}, {low, high, low, high, 1, high / 2 + 1, 1, high / 2 + 1}), name("Tile"));
    expect_outputs(OneNode("Concat").input(x).input(x).set("axis", 0),
                   tensor_of({4, 2}, {low, high, 1, high / 2 + 1, low, high, 1, high / 2 + 1}), name("Concat"));
    expect_outputs(OneNode("Trilu").input(x).set("upper", 0), tensor_of({2, 2}, {low, 0, 1, high / 2 + 1}), name("Trilu"));
    expect_outputs(OneNode("EyeLike").input(x), tensor_of({2, 2}, {1, 0, 0, 1}), name("EyeLike"));
    expect_outputs(OneNode("OneHot").input(tensor(dtype, {2}, {1, 2})).constant(integers({}, {3})).input(tensor(dtype, {2}, {low, high})),
                   tensor_of({2, 3}, {low, high, low, low, low, high}), name("OneHot"));
    expect_outputs(OneNode("MatMul").input(x).input(tensor(dtype, {2, 1}, {1, 2})),
                   tensor_of({2, 1}, {low + 2 * high, 1 + 2 * (high / 2 + 1)}), name("MatMul"));
  }
}

TEST(IntegerMoves, Scatter) {
  struct Row {
    const char* reduction;
    Whole (*formula)(Whole old, Whole update);
  };
  const std::vector<Row> rows = {
      {"none", [](Whole, Whole update) { return update; }},
      {"add", [](Whole old, Whole update) { return old + update; }},
      {"mul", [](Whole old, Whole update) { return static_cast<Whole>(static_cast<uint64_t>(old) * static_cast<uint64_t>(update)); }},
      {"max", [](Whole old, Whole update) { return std::max(old, update); }},
      {"min", [](Whole old, Whole update) { return std::min(old, update); }},
  };
  for (const DType dtype : kIntegers)
    for (const Row& row : rows) {
      const Whole low = lowest(dtype), high = highest(dtype), middle = high / 2 + 1;
      const Numbers data = {low, high, 3, middle}, updates = {high, low, middle};
      const Numbers wanted = {row.formula(low, high), row.formula(high, low), 3, row.formula(middle, middle)};
      const HostTensor x = tensor(dtype, {4}, data), places = integers({3}, {0, 1, 3}), rowed = integers({3, 1}, {0, 1, 3});
      const std::vector<HostTensor> expected = {tensor(dtype, {4}, wanted)};
      const std::string name = std::string(row.reduction) + " " + std::string(type_name(dtype));
      expect_outputs(OneNode("ScatterElements").input(x).input(places).input(tensor(dtype, {3}, updates)).set("reduction", row.reduction),
                     expected, "ScatterElements " + name);
      expect_outputs(OneNode("ScatterND").input(x).input(rowed).input(tensor(dtype, {3}, updates)).set("reduction", row.reduction),
                     expected, "ScatterND " + name);
    }
}

TEST(IntegerMoves, Constants) {
  for (const DType dtype : kIntegers) {
    const Whole high = highest(dtype);
    OneNode filled = OneNode("ConstantOfShape").constant(integers({1}, {2})).set("value", tensor(dtype, {1}, {high}));
    expect_outputs(filled, {tensor(dtype, {2}, {high, high})}, name_of("ConstantOfShape", dtype));
    if (dtype != DType::i16 && dtype != DType::i32 && dtype != DType::i64) continue;
    const OneNode range =
        OneNode("Range").constant(tensor(dtype, {}, {high})).constant(tensor(dtype, {}, {high - 6})).constant(tensor(dtype, {}, {-4}));
    expect_outputs(range, {tensor(dtype, {2}, {high, high - 4})}, name_of("Range", dtype));
  }
}

}  // namespace
}  // namespace zeroplan
