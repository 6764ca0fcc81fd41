#pragma once
// Files that a model names: below the model's folder only, no links followed, every number checked.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zeroplan {

struct ExternalRange {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // -1: not stated
};

// The keys of TensorProto.external_data, parsed strictly. Throws Error naming the tensor.
ExternalRange parse_external(const std::string& tensor, const std::vector<std::pair<std::string, std::string>>& entries);

// Opens `location` below `folder` for reading, component by component without following links; the opened file must be regular
// and have one link. Returns the descriptor; throws Error.
int open_beneath(const std::string& folder, const std::string& location);

}  // namespace zeroplan
