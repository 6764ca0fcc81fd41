#pragma once
#include <string>
#include <utility>

#include "runtime/plan/plan.h"

namespace zeroplan {

// Bytes per rank of model states with mixed-precision Adam, Ψ = parameters: 16Ψ, 4Ψ + 12Ψ/N, 2Ψ + 14Ψ/N, 16Ψ/N
// (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models").
double published_bytes(int stage, double parameters, int ranks);
// Elements moved per rank and round, in units of Ψ: 2, 2, 2, 3 (same source).
double published_volume_factor(int stage);

// "1.94 GB", "512 B": three digits, powers of 1000, at most GB.
std::string bytes_text(double bytes);
// The unit, B to GB, in which a table's largest number is at least 1: its name and its bytes.
std::pair<const char*, double> table_unit(double largest);

struct PlanAccount {
  double state_bytes = 0, transient_bytes = 0, staging_bytes = 0;
  double moved_bytes_per_step = 0;  // sent per rank and optimizer step, by gathers and reductions
  double total_bytes() const { return state_bytes + transient_bytes + staging_bytes; }
};

PlanAccount account_of(const Plan& plan);

}  // namespace zeroplan
