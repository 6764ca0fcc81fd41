// Reductions: axes, kept axes, empty sets of axes and of elements, integers and booleans, slopes where the formula has none.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using Values = std::vector<double>;

struct Reduction {
  const char* op;
  std::function<double(const Values&)> formula;
};

double sum_of(const Values& x, double (*term)(double)) {
  double sum = 0;
  for (const double each : x) sum += term(each);
  return sum;
}

const std::vector<Reduction>& reductions() {
  static const std::vector<Reduction> list = {
      {"ReduceSum", [](const Values& x) { return sum_of(x, [](double v) { return v; }); }},
      {"ReduceMean", [](const Values& x) { return sum_of(x, [](double v) { return v; }) / static_cast<double>(x.size()); }},
      {"ReduceMax", [](const Values& x) { return *std::max_element(x.begin(), x.end()); }},
      {"ReduceMin", [](const Values& x) { return *std::min_element(x.begin(), x.end()); }},
      {"ReduceL1", [](const Values& x) { return sum_of(x, [](double v) { return std::abs(v); }); }},
      {"ReduceL2", [](const Values& x) { return std::sqrt(sum_of(x, [](double v) { return v * v; })); }},
      {"ReduceSumSquare", [](const Values& x) { return sum_of(x, [](double v) { return v * v; }); }},
      {"ReduceLogSum", [](const Values& x) { return std::log(sum_of(x, [](double v) { return v; })); }},
      {"ReduceLogSumExp", [](const Values& x) { return std::log(sum_of(x, [](double v) { return std::exp(v); })); }},
  };
  return list;
}

TEST(Reductions, OverSomeAxesAndOverAll) {
  const HostTensor x = random_reals({2, 3, 4}, 0.25, 2);
  for (const Reduction& each : reductions()) {
    SCOPED_TRACE(each.op);
    std::vector<double> rows, all;
    for (int64_t i = 0; i < x.count(); ++i) all.push_back(x.get(i));
    for (int64_t j = 0; j < 3; ++j) {  // axes 0 and 2
      Values row;
      for (int64_t i = 0; i < x.count(); ++i)
        if (i / 4 % 3 == j) row.push_back(x.get(i));
      rows.push_back(each.formula(row));
    }
    OneNode node = OneNode(each.op).input(x).constant(integers({2}, {-1, 0}));
    EXPECT_EQ(difference(node.value(), {1, 3, 1}, rows), "");
    EXPECT_EQ(node.gradient_difference(), "");
    EXPECT_EQ(difference(node.set("keepdims", 0).value(), {3}, rows), "");
    EXPECT_EQ(difference(OneNode(each.op).input(x).set("keepdims", 0).value(), {}, {each.formula(all)}), "");
  }
}

TEST(Reductions, AnEmptySetOfAxesMayMeanNone) {
  const HostTensor x = reals({2}, {-3, 4});
  const auto node = [&](const char* op) { return OneNode(op).input(x).constant(integers({0}, {})).set("noop_with_empty_axes", 1); };
  EXPECT_EQ(difference(node("ReduceSum").value(), {2}, {-3, 4}), "");
  EXPECT_EQ(difference(node("ReduceSumSquare").value(), {2}, {9, 16}), "");
  EXPECT_EQ(difference(node("ReduceL2").value(), {2}, {3, 4}), "");
  EXPECT_EQ(difference(node("ReduceLogSumExp").value(), {2}, {-3, 4}), "");
  EXPECT_EQ(difference(OneNode("ReduceSum").input(x).constant(integers({0}, {})).value(), {1}, {1}), "");
}

TEST(Reductions, OfNoElements) {
  const HostTensor none = reals({2, 0}, {}), no_bytes = integers({2, 0}, {}, DType::u8);
  const auto node = [&](const char* op, const HostTensor& x) {
    return OneNode(op).input(x).constant(integers({1}, {1})).set("keepdims", 0);
  };
  EXPECT_EQ(difference(node("ReduceSum", none).value(), {2}, {0, 0}), "");
  EXPECT_EQ(difference(node("ReduceMax", none).value(), {2}, {-INFINITY, -INFINITY}), "");
  EXPECT_EQ(difference(node("ReduceMin", none).value(), {2}, {INFINITY, INFINITY}), "");
  EXPECT_EQ(difference(node("ReduceLogSumExp", none).value(), {2}, {-INFINITY, -INFINITY}), "");
  EXPECT_EQ(difference(node("ReduceMin", no_bytes).value(), {2}, {255, 255}), "");
}

TEST(Reductions, OfIntegersAndBooleans) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(OneNode("ReduceMin").input(integers({3}, {5, least, 7})).set("keepdims", 0).value().get_int(0), least);
  EXPECT_EQ(difference(OneNode("ReduceMin").input(integers({3}, {5, 2, 250}, DType::u8)).value(), {1}, {2}), "");
  EXPECT_EQ(difference(OneNode("ReduceMax").input(booleans({2, 2}, {0, 0, 0, 1})).constant(integers({1}, {1})).value(), {2, 1}, {0, 1}),
            "");
  EXPECT_EQ(difference(OneNode("ReduceMean").input(integers({3}, {1, 2, 5})).value(), {1}, {2}), "");
  EXPECT_EQ(difference(OneNode("ReduceL2").input(integers({2}, {3, 4})).value(), {1}, {5}), "");
}

TEST(Reductions, StayFiniteAtTheirEdges) {
  OneNode zero = OneNode("ReduceL2").input(reals({2, 2}, {0, 0, 3, 4})).constant(integers({1}, {1}));
  EXPECT_EQ(zero.gradient_difference(), "");
  OneNode large = OneNode("ReduceLogSumExp").input(reals({2, 2}, {1000, 1000, -1000, -1001})).constant(integers({1}, {1}));
  EXPECT_EQ(difference(large.value(), {2, 1}, {1000 + std::log(2), -1000 + std::log1p(std::exp(-1))}), "");
  EXPECT_EQ(large.gradient_difference(), "");
  const HostTensor infinite = reals({3, 2}, {-INFINITY, -INFINITY, INFINITY, 0, NAN, 0});
  EXPECT_EQ(difference(OneNode("ReduceLogSumExp").input(infinite).constant(integers({1}, {1})).value(), {3, 1}, {-INFINITY, INFINITY, NAN}),
            "");
}

}  // namespace
}  // namespace zeroplan
