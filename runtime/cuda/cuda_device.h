#pragma once
// GPUs by the CUDA runtime. Work is enqueued by the thread that issues it; nothing here runs a kernel of the model.
#include <memory>

#include "runtime/device/device.h"

namespace zeroplan {

// GPU number `index` of those that this process sees. Throws Error, naming what is wrong: no driver, a driver older than the toolkit, no
// such GPU.
std::unique_ptr<Device> make_cuda_device(int index);
// Of those that this process sees; throws as make_cuda_device where it sees none.
int cuda_devices();

}  // namespace zeroplan
