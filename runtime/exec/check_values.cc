// Check mode: the first NaN or Inf is named with the step that made it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "runtime/exec/core.h"

namespace zeroplan {
namespace {

template <typename T>
constexpr bool kFloating = std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename T>
bool finite(T x) {
  return std::isfinite(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
}

// Index of the first element that is not finite among `count` from `first` of a flat buffer, -1 where all are.
template <typename T>
int64_t first_bad(const T* data, int64_t first, int64_t count) {
  for (int64_t i = first; i < first + count; ++i)
    if (!finite(data[i])) return i;
  return -1;
}

template <typename T>
int64_t first_bad(const TensorView& view) {
  const int64_t n = view.elements();
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0;
    for (int d = view.rank - 1; d >= 0; --d) {
      at += rest % view.dims[d] * view.strides[d];
      rest /= view.dims[d];
    }
    if (!finite(view.as<T>()[at])) return i;
  }
  return -1;
}

// Padding of weights may be poisoned, to show that nothing reads it: only the parameters are looked at.
template <typename T>
int64_t first_bad(const TensorView& view, const UnitArgs& unit, const std::vector<UnitExtent>& extents) {
  for (const UnitExtent& p : extents) {
    const int64_t low = std::max(unit.first, p.offset), high = std::min(unit.first + unit.covered, p.offset + p.elements);
    if (low >= high) continue;
    const int64_t bad = first_bad(view.as<T>(), low - unit.first, high - low);
    if (bad >= 0) return bad;
  }
  return -1;
}

int64_t first_bad(const PreparedStep& s, const TensorView& view) {
  const bool flat = s.args.unit != nullptr && view.rank == 1 && view.dims[0] == s.unit.covered;
  return visit_stored(view.dtype, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (kFloating<T>) return flat ? first_bad<T>(view, s.unit, s.rank->core->extents[s.step->unit]) : first_bad<T>(view);
    return -1;
  });
}

}  // namespace

// Infinities may be meant, as in a mask.
void check_input(const TensorView& view, const std::string& name) {
  visit_dtype(view.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      const T *data = view.as<T>(), *end = data + view.elements(), *bad = std::find_if(data, end, [](T x) { return std::isnan(x); });
      if (bad != end) throw Error(fmt::format("NaN in the data of input {}, element {} of the micro-batch", name, bad - data));
    }
  });
}

void check_outputs(const PreparedStep& s) {
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    const TensorView& view = s.outputs[i];
    if (view.data == nullptr) continue;
    const PlanTensor& tensor = s.rank->plan->tensors[s.step->outputs[i].tensor];
    TensorView seen = view;
    std::vector<std::byte> copy;
    if (!s.rank->host) {
      copy.resize(static_cast<size_t>(tensor_span_bytes(tensor)));
      s.rank->read(view.data, copy.data(), static_cast<int64_t>(copy.size()));
      seen.data = copy.data();
    }
    const int64_t bad = first_bad(s, seen);
    if (bad < 0) continue;
    throw Error(fmt::format("NaN or Inf in output {} ({}), element {}: the first op that made one", i, tensor.name, bad));
  }
}

}  // namespace zeroplan
