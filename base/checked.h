#pragma once
// Arithmetic on sizes that throws Error instead of wrapping.
#include <cstdint>

namespace zeroplan {

int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
// a rounded up to a multiple of b; b > 0.
int64_t round_up(int64_t a, int64_t b);
int64_t ceil_div(int64_t a, int64_t b);
int64_t checked_int(double x);    // towards zero; throws where it does not fit
int64_t truncated_int(double x);  // towards zero; INT64_MIN for what does not fit, as processors have it

}  // namespace zeroplan
