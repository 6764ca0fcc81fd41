#include "tests/decoders/integer_types.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/type_name.h"

namespace zeroplan {

Whole lowest(DType dtype) {
  return visit_dtype(dtype, [](auto zero) { return static_cast<Whole>(std::numeric_limits<decltype(zero)>::lowest()); });
}
Whole highest(DType dtype) {
  return visit_dtype(dtype, [](auto zero) { return static_cast<Whole>(std::numeric_limits<decltype(zero)>::max()); });
}

HostTensor tensor(DType dtype, const Shape& shape, const Numbers& numbers) {
  HostTensor out(dtype, shape);
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < out.count(); ++i) out.mutable_as<T>()[i] = static_cast<T>(numbers.at(i));
  });
  return out;
}

Numbers edges(DType dtype) {
  Numbers list = {1, 2, 3, 7, 100, highest(dtype) / 2, highest(dtype) / 2 + 1, highest(dtype) - 1, highest(dtype)};
  if (has_sign(dtype)) list.insert(list.end(), {-1, -2, -5, lowest(dtype), lowest(dtype) + 1});
  return list;
}

namespace {

Whole at(const HostTensor& t, int64_t i) {
  return visit_dtype(t.dtype(), [&](auto zero) { return static_cast<Whole>(t.as<decltype(zero)>()[i]); });
}

std::string text(Whole number) {
  const bool negative = number < 0;
  std::string digits;
  for (; number != 0 || digits.empty(); number /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + (negative ? -(number % 10) : number % 10)));
  return (negative ? "-" : "") + digits;
}

// Bit by bit.
void expect_same(const HostTensor& got, const HostTensor& wanted, const std::string& what) {
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  for (int64_t i = 0; i < got.count(); ++i)
    EXPECT_TRUE(at(got, i) == at(wanted, i)) << what << " element " << i << ": " << text(at(got, i)) << ", expected "
                                             << text(at(wanted, i));
}

}  // namespace

void expect_outputs(const OneNode& node, const std::vector<HostTensor>& wanted, const std::string& what) {
  const std::vector<HostTensor> reference = node.values(), kernels = node.planned();
  for (size_t i = 0; i < wanted.size(); ++i) {
    expect_same(reference.at(i), wanted[i], what + " by the evaluators");
    expect_same(kernels.at(i), wanted[i], what + " by the kernels");
  }
}

std::string name_of(const char* op, DType dtype) { return std::string(op) + " of " + std::string(type_name(dtype)); }

}  // namespace zeroplan
