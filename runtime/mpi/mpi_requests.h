#pragma once
// Messages under way. Only runtime/mpi includes this.
#include <mpi.h>

#include <cstdint>
#include <vector>

namespace zeroplan {

// Throws Error with MPI's own words.
void check_mpi(int code, const char* call);

// Sends and receives of one exchange, in parts of at most 1 GiB: MPI counts in int.
class MpiRequests {
 public:
  explicit MpiRequests(MPI_Comm comm) : comm_(comm) {}
  void send(const void* from, int64_t bytes, int peer);
  void receive(void* to, int64_t bytes, int peer);
  // Throw Error where a message has another size than its receiver wants: the ranks do not run the same plan.
  bool done();                 // takes what has arrived
  bool done_with(int peer);    // all messages from and to this one
  std::vector<int> missing();  // peers with a message that has not arrived, by number
  // Some peer among them of which `holds` is true, -1 where there is none.
  template <typename Test>
  int missing_one(const Test& holds) {
    for (size_t i = 0; i < requests_.size(); ++i)
      if (!test(i) && holds(peers_[i])) return peers_[i];
    return -1;
  }
  void clear();  // forgets all, done or not; keeps its memory

 private:
  void add(int peer, int received);
  bool test(size_t i);

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_, expected_;  // by request; bytes to receive, -1 for a send
};

}  // namespace zeroplan
