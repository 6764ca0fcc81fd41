#pragma once
// The other ranks' processes, as far as they run on this machine: whether they still do. Only runtime/mpi includes this.
#include <string>
#include <vector>

namespace zeroplan {

// Which process this is, in a form that is sent to others.
struct ProcessIdentity {
  char machine[40] = {};  // boot id of the kernel
  unsigned long long pid_namespace = 0;
  long pid = 0;
  unsigned long long started = 0;  // in the kernel's ticks: a number may be given anew
};

ProcessIdentity own_identity();

class PeerProcesses {
 public:
  PeerProcesses() = default;
  explicit PeerProcesses(std::vector<ProcessIdentity> by_rank);
  // This rank and those whose clocks and processes can be seen from here.
  bool on_this_machine(int rank) const;
  // "its process 4711 has ended", "its process 4711 is stopped"; empty where it runs or cannot be seen.
  std::string trouble(int rank) const;
  bool ended(int rank) const;
  bool stopped(int rank) const;  // by a signal, until it is told to continue

 private:
  std::vector<ProcessIdentity> by_rank_;
  ProcessIdentity own_;
};

}  // namespace zeroplan
