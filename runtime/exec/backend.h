#pragma once
// What the ranks of one process run on: devices, communicators, kernels.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"

namespace zeroplan {

// One rank of the plan that this process carries out.
struct RankBackend {
  int rank = 0;                                  // among all ranks of the plan
  std::shared_ptr<Device> device;                // ranks on one device share it
  std::unique_ptr<Communicator> gather, reduce;  // each of all ranks of the plan
};

struct Backend {
  std::vector<RankBackend> ranks;            // at least one, in the order of their numbers
  std::string collectives;                   // what carries them out, as a sentence; empty: nothing to choose from
  std::string products;                      // which algorithms make them, as a sentence; empty: nothing to choose from
  Kernel (*kernel_of)(OpKind) = cpu_kernel;  // nullptr for an op without a kernel
  // What the kernels of a rank work with, given its compute stream; empty: nothing.
  std::function<std::unique_ptr<KernelContext>(Stream& compute)> new_context;
};

// All ranks of the plan as threads of this process, on the CPU. A collective that a rank does not join within `deadline` fails.
Backend make_cpu_backend(const Plan& plan, std::chrono::milliseconds deadline);

}  // namespace zeroplan
