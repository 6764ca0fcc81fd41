#include "nccl/registry.h"

namespace cuda_host::nccl {

namespace {

std::mutex registry_mutex;
std::map<std::string, std::weak_ptr<Team>>& teams() {
  static auto* map = new std::map<std::string, std::weak_ptr<Team>>;
  return *map;
}
std::set<ncclComm_t>& comms() {
  static auto* set = new std::set<ncclComm_t>;
  return *set;
}

}  // namespace

Group& group() {
  static thread_local Group current;
  return current;
}

std::string& thread_error() {
  static thread_local std::string text;
  return text;
}

ncclResult_t refuse(ncclResult_t code, const std::string& why) {
  thread_error() = why;
  return code;
}

std::shared_ptr<Member> find(ncclComm_t comm) {
  const rt::Lock lock(registry_mutex);
  return comms().contains(comm) ? comm->member : nullptr;
}

ncclComm_t publish(std::shared_ptr<Member> member) {
  const rt::Lock lock(registry_mutex);
  auto* comm = new ncclComm{std::move(member)};
  comms().insert(comm);
  return comm;
}

std::shared_ptr<Team> team_of(const ncclUniqueId& id, int ranks) {
  const rt::Lock lock(registry_mutex);
  auto& slot = teams()[std::string(id.internal, sizeof(id.internal))];
  auto team = slot.lock();
  if (!team) slot = team = std::make_shared<Team>(ranks);
  return team;
}

void forget(ncclComm_t comm) {
  const rt::Lock lock(registry_mutex);
  comms().erase(comm);
  delete comm;
}

}  // namespace cuda_host::nccl
