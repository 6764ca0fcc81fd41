#include "comm_kind.h"

namespace zeroplan::test {
namespace {

Devices cpu_devices(int ranks) { return Devices(ranks, make_cpu_device(1)); }

std::vector<std::unique_ptr<Communicator>> make(const Devices& devices, std::chrono::milliseconds deadline) {
  return make_local_communicators(static_cast<int>(devices.size()), deadline);
}

}  // namespace

const std::vector<CommKind>& comm_kinds() {
  static const std::vector<CommKind> kinds{{"Local", cpu_devices, make}};
  return kinds;
}

}  // namespace zeroplan::test
