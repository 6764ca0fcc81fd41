#include "runtime/mpi/peer_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace zeroplan {
namespace {

using testing::HasSubstr;

// A process that waits until it is ended.
class Child {
 public:
  Child() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const ProcessIdentity own = own_identity();
      [[maybe_unused]] const ssize_t wrote = write(ends[1], &own, sizeof own);
      for (;;) pause();
    }
    EXPECT_EQ(read(ends[0], &identity, sizeof identity), static_cast<ssize_t>(sizeof identity));
    for (const int end : ends) close(end);
  }
  ~Child() {
    if (pid_ > 0) signal_and_wait(SIGKILL, 0);
  }
  void signal_and_wait(int number, int options) {
    kill(pid_, number);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, options), pid_);
    if (!WIFSTOPPED(status)) pid_ = 0;
  }
  void kill_alone() const { kill(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

  ProcessIdentity identity;

 private:
  pid_t pid_ = 0;
};

TEST(PeerProcesses, OneThatRunsHasNoTrouble) {
  const Child child;
  const PeerProcesses peers({own_identity(), child.identity});
  EXPECT_TRUE(peers.on_this_machine(0) && peers.on_this_machine(1));
  EXPECT_FALSE(peers.ended(0) || peers.ended(1) || peers.stopped(1));
  EXPECT_EQ(peers.trouble(0) + peers.trouble(1), "");
}

TEST(PeerProcesses, AStoppedOneHasNotEnded) {
  Child child;
  const PeerProcesses peers({child.identity});
  child.signal_and_wait(SIGSTOP, WUNTRACED);
  EXPECT_FALSE(peers.ended(0));
  EXPECT_TRUE(peers.stopped(0));
  EXPECT_THAT(peers.trouble(0), HasSubstr(std::to_string(child.pid()) + " is stopped"));
}

TEST(PeerProcesses, OneThatEndedIsKnownBeforeAndAfterItsParentHasAskedForIt) {
  Child child;
  const PeerProcesses peers({child.identity});
  child.kill_alone();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, child.pid(), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(peers.ended(0));
  child.signal_and_wait(SIGKILL, 0);
  EXPECT_TRUE(peers.ended(0));
  EXPECT_THAT(peers.trouble(0), HasSubstr("has ended"));
}

TEST(PeerProcesses, ANumberThatIsGivenAnewIsAnotherProcess) {
  Child child;
  ++child.identity.started;
  EXPECT_TRUE(PeerProcesses({child.identity}).ended(0));
}

TEST(PeerProcesses, WhatRunsElsewhereIsNotSeen) {
  Child child;
  ProcessIdentity machine = child.identity, space = child.identity;
  machine.machine[0] ^= 1;
  ++space.pid_namespace;
  const PeerProcesses peers({machine, space});
  child.signal_and_wait(SIGKILL, 0);
  for (const int rank : {0, 1}) {
    EXPECT_FALSE(peers.on_this_machine(rank));
    EXPECT_FALSE(peers.ended(rank));
    EXPECT_EQ(peers.trouble(rank), "");
  }
}

}  // namespace
}  // namespace zeroplan
