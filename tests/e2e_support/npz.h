#pragma once
#include <map>
#include <string>

#include "base/host_tensor.h"

namespace zeroplan {

// Every array of an uncompressed .npz file (numpy.savez).
std::map<std::string, HostTensor> read_npz(const std::string& path);

}  // namespace zeroplan
