#pragma once
// .npy files as NumPy reads them: version 1, C order, little-endian.
#include <string>

#include "base/host_tensor.h"

namespace zeroplan {

// The file appears whole or not at all; throws Error naming it.
void write_npy(const std::string& path, const HostTensor& values);

}  // namespace zeroplan
