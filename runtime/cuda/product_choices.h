#pragma once
// The algorithm of every matrix product of a plan: rank 0 chooses, all ranks use its choices. Only runtime/cuda includes this.
#include <memory>
#include <string>

#include "kernels/cuda/products.h"
#include "runtime/device/device.h"

namespace zeroplan {

// What the library on this rank's GPU would take. Throws Error, naming the step, where no algorithm takes a product.
ProductChoices choose_products(const Plan& plan, int rank, Device& device);
// Throws Error, naming rank, step and product, where this rank's GPU cannot make one as it was chosen, or makes one that was not.
void require_products(const Plan& plan, int rank, Device& device, const ProductChoices& choices);

// The choices and the library's version as text, for other processes. Throws Error where these have another version.
std::string packed(const ProductChoices& choices);
ProductChoices unpacked_choices(const std::string& text, int rank);
// "12 matrix products by cuBLASLt 13.0.2, algorithms chosen by rank 0: 0123…"; runs with the same digest make each product alike. Empty
// without products.
std::string choices_line(const ProductChoices& choices);

}  // namespace zeroplan
