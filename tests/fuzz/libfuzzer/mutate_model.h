#pragma once
// Mutations of a model that keep it a model: most bytes that are changed at random are refused before anything looks at the nodes.
#include <string>
#include <string_view>

namespace zeroplan {

// Empty: the bytes are no model. Equal seeds give equal results.
std::string mutated_model(std::string_view bytes, unsigned int seed);

}  // namespace zeroplan
