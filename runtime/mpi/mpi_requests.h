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
  bool done();                       // takes what has arrived
  bool done_with(int peer);          // all messages from and to this one
  std::vector<int> missing() const;  // peers with a message that has not arrived, by number
  void clear();                      // forgets all, done or not; keeps its memory

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;  // by request
};

}  // namespace zeroplan
