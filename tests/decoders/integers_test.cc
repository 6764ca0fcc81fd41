// Arithmetic, casts and reductions on every integer type, at the ends of its range. Expected values are those of NumPy: the result in whole
// numbers of 128 bits, cut to the type.
#include <functional>

#include <gtest/gtest.h>

#include "base/type_name.h"
#include "graph/onnx/tensor_data.h"
#include "tests/decoders/integer_types.h"

namespace zeroplan {
namespace {

Whole floored(Whole a, Whole b) {
  const Whole rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Whole power(Whole base, Whole exponent) {
  uint64_t product = 1;  // all that the types keep
  for (Whole i = 0; i < exponent % 128; ++i) product *= static_cast<uint64_t>(base);
  return static_cast<int64_t>(product);
}

struct Binary {
  const char* op;
  Whole (*formula)(Whole a, Whole b);
  std::function<void(OneNode&)> set = nullptr;
  bool gives_boolean = false;
};

TEST(Integers, BinaryOperators) {
  const std::vector<Binary> rows = {
      {"Add", [](Whole a, Whole b) { return a + b; }},
      {"Sub", [](Whole a, Whole b) { return a - b; }},
      {"Mul", [](Whole a, Whole b) { return static_cast<Whole>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)); }},
      {"Div", [](Whole a, Whole b) { return a / b; }},
      {"Mod", floored},
      {"Mod", [](Whole a, Whole b) { return a % b; }, [](OneNode& n) { n.set("fmod", 1); }},
      {"Max", [](Whole a, Whole b) { return std::max(a, b); }},
      {"Min", [](Whole a, Whole b) { return std::min(a, b); }},
      {"BitwiseAnd", [](Whole a, Whole b) { return a & b; }},
      {"BitwiseOr", [](Whole a, Whole b) { return a | b; }},
      {"BitwiseXor", [](Whole a, Whole b) { return a ^ b; }},
      {"Equal", [](Whole a, Whole b) { return Whole{a == b}; }, nullptr, true},
      {"Less", [](Whole a, Whole b) { return Whole{a < b}; }, nullptr, true},
      {"Greater", [](Whole a, Whole b) { return Whole{a > b}; }, nullptr, true},
      {"LessOrEqual", [](Whole a, Whole b) { return Whole{a <= b}; }, nullptr, true},
      {"GreaterOrEqual", [](Whole a, Whole b) { return Whole{a >= b}; }, nullptr, true},
      {"PRelu", [](Whole a, Whole b) { return a < 0 ? a * b : a; }},
  };
  for (const DType dtype : kIntegers) {
    const Numbers a = edges(dtype);
    const int64_t n = static_cast<int64_t>(a.size());
    for (const Binary& row : rows) {
      Numbers left, right, wanted;
      for (const Whole x : a)
        for (const Whole y : a) left.push_back(x), right.push_back(y), wanted.push_back(row.formula(x, y));
      OneNode node = OneNode(row.op).input(tensor(dtype, {n, n}, left)).input(tensor(dtype, {n, n}, right));
      if (row.set) row.set(node);
      expect_outputs(node, {tensor(row.gives_boolean ? DType::boolean : dtype, {n, n}, wanted)}, name_of(row.op, dtype));
    }
  }
}

TEST(Integers, ShiftsOfUnsignedOnes) {
  for (const DType dtype : kIntegers) {
    if (has_sign(dtype)) continue;
    const int64_t bits = 8 * dtype_bytes(dtype), n = static_cast<int64_t>(edges(dtype).size());
    const Numbers a = edges(dtype), by = {0, 1, 2, bits - 1, bits};
    Numbers left, right;
    for (const Whole x : a)
      for (const Whole s : by) left.push_back(x << static_cast<int>(s)), right.push_back(x >> static_cast<int>(s));
    for (const bool to_left : {true, false}) {
      OneNode node = OneNode("BitShift").input(tensor(dtype, {n, 1}, a)).input(tensor(dtype, {5}, by));
      expect_outputs(node.set("direction", to_left ? "LEFT" : "RIGHT"), {tensor(dtype, {n, 5}, to_left ? left : right)},
                     name_of("BitShift", dtype));
    }
  }
}

// The exponent may be of any type; a negative one gives the truncated quotient.
TEST(Integers, Powers) {
  for (const DType dtype : kIntegers)
    for (const DType other : kIntegers) {
      const Numbers bases = edges(dtype), exponents = {0, 1, 2, 5, 63, 100};
      const auto n = static_cast<int64_t>(bases.size());
      Numbers wanted;
      for (const Whole base : bases)
        for (const Whole exponent : exponents) wanted.push_back(power(base, exponent));
      expect_outputs(OneNode("Pow").input(tensor(dtype, {n, 1}, bases)).input(tensor(other, {6}, exponents)),
                     {tensor(dtype, {n, 6}, wanted)}, name_of("Pow", dtype) + " by " + std::string(type_name(other)));
      if (!has_sign(other)) continue;
      Numbers inverse;
      for (const Whole base : bases) inverse.push_back(base == 1 ? 1 : base == -1 ? -1 : 0);
      expect_outputs(OneNode("Pow").input(tensor(dtype, {n}, bases)).input(tensor(other, {}, {-3})), {tensor(dtype, {n}, inverse)},
                     name_of("Pow", dtype) + " by a negative " + std::string(type_name(other)));
    }
  for (const DType dtype : kIntegers)
    expect_outputs(OneNode("Pow").input(tensor(dtype, {4}, {1, 2, 9, 120})).input(reals({2, 1}, {0.5, -1})),
                   {tensor(dtype, {2, 4}, {1, 1, 3, 10, 1, 0, 0, 0})}, name_of("Pow", dtype) + " by a half and by -1");
}

struct Unary {
  const char* op;
  Whole (*formula)(Whole a);
};

TEST(Integers, UnaryOperators) {
  const std::vector<Unary> rows = {
      {"Abs", [](Whole a) { return a < 0 ? -a : a; }},
      {"Neg", [](Whole a) { return -a; }},
      {"Sign", [](Whole a) { return Whole{(a > 0) - (a < 0)}; }},
      {"BitwiseNot", [](Whole a) { return ~a; }},
      {"Relu", [](Whole a) { return a < 0 ? Whole{0} : a; }},
      {"Identity", [](Whole a) { return a; }},
  };
  for (const DType dtype : kIntegers) {
    Numbers a = edges(dtype);
    a.push_back(0);
    const auto n = static_cast<int64_t>(a.size());
    for (const Unary& row : rows) {
      Numbers wanted;
      for (const Whole x : a) wanted.push_back(row.formula(x));
      expect_outputs(OneNode(row.op).input(tensor(dtype, {n}, a)), {tensor(dtype, {n}, wanted)}, name_of(row.op, dtype));
    }
  }
}

// Integers wrap, floating-point numbers lose what is behind the point; to them integers are rounded to nearest, once.
TEST(Integers, Casts) {
  for (const DType from : kIntegers) {
    Numbers a = edges(from);
    a.push_back(0);
    const auto n = static_cast<int64_t>(a.size());
    const HostTensor x = tensor(from, {n}, a);
    for (const DType to : kIntegers)
      expect_outputs(OneNode("Cast").input(x).set("to", static_cast<int64_t>(onnx_type(to))), {tensor(to, {n}, a)},
                     name_of("Cast", from) + " to " + std::string(type_name(to)));
    Numbers truth;
    std::vector<double> singles;
    for (const Whole number : a) truth.push_back(number != 0), singles.push_back(static_cast<float>(number));
    expect_outputs(OneNode("Cast").input(x).set("to", static_cast<int64_t>(kOnnxBool)), {tensor(DType::boolean, {n}, truth)},
                   name_of("Cast", from) + " to bool");
    const HostTensor floats = OneNode("Cast").input(x).set("to", static_cast<int64_t>(kOnnxFloat)).planned()[0];
    EXPECT_EQ(difference(floats, {n}, singles, 0), "") << name_of("Cast", from) << " to float32";
  }
  for (const DType to : kIntegers) {
    std::vector<double> given = {0.9, 1.5, 2.999, 100.5};
    Numbers wanted = {0, 1, 2, 100};
    if (has_sign(to)) given.insert(given.end(), {-0.9, -1.5, -100.5}), wanted.insert(wanted.end(), {0, -1, -100});
    if (to == DType::u64) given.push_back(0x1.8p63), wanted.push_back(Whole{3} << 62);
    if (to == DType::u32) given.push_back(0x1.8p31), wanted.push_back(Whole{3} << 30);
    const auto n = static_cast<int64_t>(given.size());
    expect_outputs(OneNode("Cast").input(reals({n}, given)).set("to", static_cast<int64_t>(onnx_type(to))), {tensor(to, {n}, wanted)},
                   "Cast of float32 to " + std::string(type_name(to)));
  }
}

struct Fold {
  const char* op;
  Whole (*formula)(const Numbers& x);
};

Whole sum(const Numbers& x) {
  Whole total = 0;
  for (const Whole each : x) total += each;
  return total;
}

TEST(Integers, Reductions) {
  const std::vector<Fold> rows = {
      {"ReduceSum", sum},
      {"ReduceMax", [](const Numbers& x) { return *std::max_element(x.begin(), x.end()); }},
      {"ReduceMin", [](const Numbers& x) { return *std::min_element(x.begin(), x.end()); }},
      {"ReduceProd",
       [](const Numbers& x) {
         uint64_t product = 1;
         for (const Whole each : x) product *= static_cast<uint64_t>(each);
         return static_cast<Whole>(static_cast<int64_t>(product));
       }},
      {"ReduceSumSquare",
       [](const Numbers& x) {
         uint64_t total = 0;
         for (const Whole each : x) total += static_cast<uint64_t>(each) * static_cast<uint64_t>(each);
         return static_cast<Whole>(static_cast<int64_t>(total));
       }},
      {"ReduceL1",
       [](const Numbers& x) {
         Whole total = 0;
         for (const Whole each : x) total += each < 0 ? -each : each;
         return total;
       }},
  };
  for (const DType dtype : kIntegers) {
    const Whole low = lowest(dtype), high = highest(dtype);
    const std::vector<Numbers> lists = {{1, high, low, 3}, {high - 1, high, high / 2, high / 3}, {low, low + 1, 5, low + 2}};
    Numbers flat;
    for (const Numbers& list : lists) flat.insert(flat.end(), list.begin(), list.end());
    for (const Fold& row : rows) {
      Numbers wanted;
      for (const Numbers& list : lists) wanted.push_back(row.formula(list));
      expect_outputs(OneNode(row.op).input(tensor(dtype, {3, 4}, flat)).constant(integers({1}, {1})).set("keepdims", 0),
                     {tensor(dtype, {3}, wanted)}, name_of(row.op, dtype));
    }
    const Numbers modest = {high, high - 3, 7, 1};
    if (dtype != DType::i64 && dtype != DType::u64)
      expect_outputs(OneNode("ReduceMean").input(tensor(dtype, {4}, modest)).set("keepdims", 0), {tensor(dtype, {}, {sum(modest) / 4})},
                     name_of("ReduceMean", dtype));
    expect_outputs(OneNode("ReduceMean").input(tensor(dtype, {2}, {high, 0})).set("keepdims", 0), {tensor(dtype, {}, {high / 2})},
                   name_of("ReduceMean", dtype));
  }
}

}  // namespace
}  // namespace zeroplan
