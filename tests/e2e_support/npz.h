#pragma once
#include <map>
#include <string>

#include "base/host_tensor.h"

namespace zeroplan {

// Every array of an uncompressed .npz file (numpy.savez), f4, f8 and i8.
std::map<std::string, HostTensor> read_npz(const std::string& path);
HostTensor read_npy(const std::string& path);
// Version 1.0, for tests that make their own data.
void write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace zeroplan
