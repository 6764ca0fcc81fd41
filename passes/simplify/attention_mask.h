#pragma once
// What a constant attention mask says.
#include "base/host_tensor.h"

namespace zeroplan {

// Scores below this never survive a softmax.
inline constexpr double kMasked = -1e4;

enum class MaskKind { none, causal, general };

// Of an additive mask whose last two axes are [rows, columns]: none where every element is 0; causal where the elements above the
// diagonal of a square are at most kMasked and the others 0.
MaskKind classify_additive_mask(const HostTensor& mask, int64_t rows, int64_t columns);
// Of a condition that keeps a score where it is true.
MaskKind classify_keep_mask(const HostTensor& keep, bool kept_where, int64_t rows, int64_t columns);
// Every row of an additive mask keeps at least one score.
bool keeps_some_in_each_row(const HostTensor& mask);

}  // namespace zeroplan
