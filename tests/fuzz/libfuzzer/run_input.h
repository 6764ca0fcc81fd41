#pragma once
// An input of the fuzzer as a file, which is what the importer reads.
#include <cstddef>
#include <cstdint>
#include <string>

namespace zeroplan {

void run_input(const uint8_t* data, size_t size, void (*target)(const std::string& path));

}  // namespace zeroplan
