#include "tests/fuzz/libfuzzer/choice.h"

#include <limits>

namespace zeroplan {

int64_t Choice::integer() {
  static const std::vector<int64_t> ends = {INT64_MIN,
                                            INT64_MAX,
                                            INT64_MIN + 1,
                                            INT32_MIN,
                                            INT32_MAX,
                                            int64_t{1} << 31,
                                            int64_t{1} << 32,
                                            int64_t{1} << 40,
                                            int64_t{1} << 48,
                                            int64_t{1} << 62,
                                            65536,
                                            1 << 20,
                                            255,
                                            1000,
                                            4096};
  switch (below(8)) {
    case 0: return of(ends);
    case 1: return -(1 + below(9));
    case 2: return below(100);
    default: return below(6);
  }
}

int64_t Choice::size() {
  switch (below(16)) {
    case 0: return integer();
    case 1: return 0;
    case 2: return 1 + below(300);
    default: return 1 + below(5);
  }
}

double Choice::number() {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> ends = {0,
                                           -0.0,
                                           1,
                                           -1,
                                           0.5,
                                           2,
                                           1e-30,
                                           1e30,
                                           -1e30,
                                           1e300,
                                           1e-45,
                                           9.3e18,
                                           -9.3e18,
                                           4.3e9,
                                           65536.5,
                                           Limits::infinity(),
                                           -Limits::infinity(),
                                           Limits::quiet_NaN()};
  return below(3) == 0 ? below(1000) / 100.0 : of(ends);
}

int Choice::element_type() {
  static const std::vector<int> common = {1, 6, 7, 9, 11};
  return below(2) ? of(common) : below(27);
}

}  // namespace zeroplan
