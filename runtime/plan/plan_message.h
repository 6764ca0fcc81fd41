#pragma once
// Conversion between Plan and its protobuf message; private to runtime/plan.
#include "base/error.h"
#include "plan.pb.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

proto::Plan to_message(const Plan& plan);

}  // namespace zeroplan
