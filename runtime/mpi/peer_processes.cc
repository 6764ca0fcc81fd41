#include "runtime/mpi/peer_processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace zeroplan {
namespace {

struct ProcessState {
  char state = 0;  // as in /proc/PID/stat; 0: there is no such process
  unsigned long long started = 0;
};

// Fields 3 and 22 of /proc/PID/stat; the name in field 2 may hold anything, and ends with the last parenthesis. Nothing is allocated.
ProcessState read_state(long pid) {
  char path[40], text[1024];
  *fmt::format_to(path, "/proc/{}/stat", pid) = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[std::max<ssize_t>(count, 0)] = 0;
  const char* fields = std::strrchr(text, ')');
  ProcessState out;
  constexpr const char* kFields = ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (fields == nullptr || std::sscanf(fields, kFields, &out.state, &out.started) != 2) return {};
  return out;
}

bool has_ended(const ProcessIdentity& who, const ProcessState& now) {
  return now.state == 0 || now.state == 'Z' || now.state == 'X' || now.started != who.started;
}

}  // namespace

ProcessIdentity own_identity() {
  ProcessIdentity own;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::strncpy(own.machine, boot.c_str(), sizeof own.machine - 1);
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0) own.pid_namespace = status.st_ino;
  own.pid = getpid();
  own.started = read_state(own.pid).started;
  return own;
}

PeerProcesses::PeerProcesses(std::vector<ProcessIdentity> by_rank) : by_rank_(std::move(by_rank)), own_(own_identity()) {}

bool PeerProcesses::on_this_machine(int rank) const {
  const ProcessIdentity& who = by_rank_[rank];
  const auto known = [](const ProcessIdentity& p) { return p.started != 0 && p.machine[0] != 0; };
  return known(own_) && known(who) && who.pid_namespace == own_.pid_namespace && std::strcmp(who.machine, own_.machine) == 0;
}

bool PeerProcesses::ended(int rank) const { return on_this_machine(rank) && has_ended(by_rank_[rank], read_state(by_rank_[rank].pid)); }

std::string PeerProcesses::trouble(int rank) const {
  if (!on_this_machine(rank)) return "";
  const ProcessIdentity& who = by_rank_[rank];
  const ProcessState now = read_state(who.pid);
  if (has_ended(who, now)) return fmt::format("its process {} has ended", who.pid);
  if (now.state == 'T' || now.state == 't') return fmt::format("its process {} is stopped", who.pid);
  return "";
}

}  // namespace zeroplan
