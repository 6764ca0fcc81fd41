#pragma once
// Static shapes and strides, in elements. An empty shape is a scalar.
#include <cstdint>
#include <string>
#include <vector>

namespace zeroplan {

inline constexpr int kMaxRank = 8;

using Shape = std::vector<int64_t>;
using Strides = std::vector<int64_t>;

int64_t elements(const Shape& shape);                            // checked; 1 for a scalar
Strides contiguous_strides(const Shape& shape);                  // row-major
bool is_contiguous(const Shape& shape, const Strides& strides);  // size-1 axes are ignored
Shape broadcast_shapes(const Shape& a, const Shape& b);          // NumPy rule; throws Error
// Axis counted from the end where negative; throws Error when outside [-rank, rank).
int64_t normalize_axis(int64_t axis, int64_t rank);
std::string to_string(const Shape& shape);  // [2,3]

}  // namespace zeroplan
