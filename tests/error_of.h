#pragma once
#include <string>

#include "base/error.h"

namespace zeroplan {

inline constexpr const char* kNoError = "no error";

// What `work` fails with; kNoError where it does not.
template <typename Caught = Error, typename Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Caught& error) {
    return error.what();
  }
  return kNoError;
}

}  // namespace zeroplan
