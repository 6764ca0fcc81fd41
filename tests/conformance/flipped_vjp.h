#pragma once
// What a check of gradients must find.
#include <string>

#include "graph/ops/op_def.h"

namespace zeroplan {

// While it lives, the vjp of the operator gives every gradient with the other sign. One at a time.
class FlippedVjp {
 public:
  explicit FlippedVjp(const std::string& op);  // throws Error where it has no vjp
  ~FlippedVjp();
  FlippedVjp(const FlippedVjp&) = delete;
  FlippedVjp& operator=(const FlippedVjp&) = delete;

 private:
  OpDef& def_;
};

}  // namespace zeroplan
