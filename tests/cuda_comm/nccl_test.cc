// What operations by NCCL add to the suite: they end later than they are issued, and may fail in between.
#include "runtime/cuda/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <thread>

#include "comm_kind.h"
#include "cuda_host/control.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/error_of.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::RankContext;
using ::testing::AllOf;
using ::testing::HasSubstr;

const test::CommKind& nccl() { return test::comm_kinds().at(2); }

class Nccl : public ::testing::Test {
 protected:
  ~Nccl() override { EXPECT_EQ(cuda_host::reset(), 0); }
};

void stall(void* duration) { std::this_thread::sleep_for(*static_cast<std::chrono::milliseconds*>(duration)); }

// All have issued it; the stream of one does not get there.
TEST_F(Nccl, AStreamThatStallsIsNamedBehindTheDeadline) {
  std::chrono::milliseconds pause = 1500ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = test::on_ranks(nccl(), 3, 300ms, [&](RankContext c) {
    Buffer<double> x(c, {1});
    c.comm.barrier(c.stream);
    c.stream.synchronize();
    if (c.rank == 1) c.stream.host_call(stall, &pause);
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    c.stream.synchronize();
  });
  for (const auto& e : errors)
    EXPECT_THAT(e, HasSubstr("rank 1 did not come to collective 1 (all_reduce of 1 float64 elements) within 300 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

// A wait that is long because of other work on the own stream is none of the peers' faults.
TEST_F(Nccl, TheDeadlineBeginsWhereTheStreamComesToTheOperation) {
  std::chrono::milliseconds pause = 700ms;
  test::expect_no_errors(test::on_ranks(nccl(), 2, 400ms, [&](RankContext c) {
    Buffer<double> x(c, {1});
    c.stream.host_call(stall, &pause);
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    EXPECT_EQ(x.get()[0], 2);
  }));
}

TEST_F(Nccl, ItsOwnErrorEndsAllRanksInItsWords) {
  cuda_host::settings().nccl_timeout_ms = 100;
  cuda_host::settings().print_faults = false;
  std::chrono::milliseconds pause = 600ms;
  const auto errors = test::on_ranks(nccl(), 2, 20s, [&](RankContext c) {
    Buffer<double> x(c, {1});
    if (c.rank == 1) c.stream.host_call(stall, &pause);
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    c.stream.synchronize();
  });
  for (const auto& e : errors) EXPECT_THAT(e, AllOf(HasSubstr("all_reduce of 1 float64 elements by NCCL failed"), HasSubstr("remote")));
}

TEST_F(Nccl, ACallThatFailsIsNamed) {
  const auto errors = test::on_ranks(nccl(), 2, 1s, [&](RankContext c) {
    Buffer<char> full(c, std::vector<char>(64));
    if (c.rank == 0) cuda_host::fail_call("ncclAllGather", 1, ncclSystemError);
    c.comm.barrier(c.stream);
    c.comm.all_gather(full.data() + c.rank * 32, full.data(), 32, c.stream);
    c.stream.synchronize();
  });
  EXPECT_THAT(errors[0] + errors[1], AllOf(HasSubstr("ncclAllGather failed"), HasSubstr("unhandled system error")));
}

// The listener hears of it while the stream stands at the operation: here before the mark behind it.
TEST_F(Nccl, TheListenerHearsFirst) {
  std::chrono::milliseconds pause = 1000ms;
  std::atomic<int> told{0};
  std::atomic<bool> behind{false};
  const auto errors = test::on_ranks(nccl(), 2, 200ms, [&](RankContext c) {
    Buffer<double> x(c, {1});
    const auto word = c.device.alloc_host(sizeof(uint32_t));
    auto* mark = static_cast<uint32_t*>(word->data());
    *mark = 0;
    c.comm.watch([&, mark, rank = c.rank](std::exception_ptr error) {
      if (rank == 0 && std::atomic_ref(*mark).load() != 0) behind = true;
      EXPECT_THROW(std::rethrow_exception(error), MissingPeers);
      ++told;
    });
    if (c.rank == 1) c.stream.host_call(stall, &pause);
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    c.stream.mark(mark, 1);
    try {
      c.stream.synchronize();
    } catch (const Error&) {
    }
    c.comm.watch(nullptr);
  });
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(behind);
}

TEST_F(Nccl, AbortEndsWhatIsUnderWay) {
  std::chrono::milliseconds pause = 800ms;
  const auto errors = test::on_ranks(nccl(), 2, 20s, [&](RankContext c) {
    Buffer<double> x(c, {1});
    if (c.rank == 1) c.stream.host_call(stall, &pause);
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    if (c.rank == 1) c.comm.abort("the first reason");
    c.comm.abort("another reason");
    c.stream.synchronize();
  });
  for (const auto& e : errors) EXPECT_THAT(e, HasSubstr(" reason"));
  EXPECT_EQ(errors[0], errors[1]);
}

TEST_F(Nccl, MemoryIsRegisteredUntilItsHandleEnds) {
  test::expect_no_errors(test::on_ranks(nccl(), 2, 5s, [](RankContext c) {
    Buffer<char> bytes(c, std::vector<char>(4096));
    const std::shared_ptr<void> handle = c.comm.share(bytes.data(), 4096);
    EXPECT_NE(handle, nullptr);
  }));
  EXPECT_EQ(cuda_host::call_count("ncclCommRegister"), 4u);  // and the receive buffers
  EXPECT_EQ(cuda_host::call_count("ncclCommDeregister"), 4u);
  EXPECT_EQ(cuda_host::call_count("ncclCommDestroy"), 2u);
}

TEST_F(Nccl, ARankThatNeverConnectsIsMissed) {
  NcclSetup setup{.size = 2, .ranks = {0}, .devices = {make_cuda_device(0)}, .id = new_nccl_id(), .deadline = 300ms, .receive_bytes = 4096};
  EXPECT_THROW(make_nccl_communicators(setup), MissingPeers);
}

NcclSetup one_of_two() {
  return {.size = 2, .ranks = {0}, .devices = {make_cuda_device(0)}, .id = new_nccl_id(), .deadline = 20s, .receive_bytes = 4096};
}

TEST_F(Nccl, APeerThatFailsIsHeardWhileConnecting) {
  NcclSetup setup = one_of_two();
  setup.check_peers = [] { throw PeerFailure("rank 1: no data"); };
  EXPECT_THAT(error_of([&] { make_nccl_communicators(setup); }), HasSubstr("rank 1: no data"));
}

// The other processes hear of it before what may hang with the device.
TEST_F(Nccl, AnAbortIsToldToPeers) {
  NcclSetup setup = one_of_two();
  setup.size = 1;
  std::string told;
  setup.tell_peers = [&](const std::string& words) { told += words; };
  make_nccl_communicators(setup)[0]->abort("rank 0: its words");
  EXPECT_EQ(told, "rank 0: its words");
}

TEST_F(Nccl, AnOldLibraryIsRefusedWithBothVersions) {
  cuda_host::settings().nccl_version = 22105;
  try {
    nccl_version();
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("2.21.5"), HasSubstr("2.26.0")));
  }
}

}  // namespace
}  // namespace zeroplan
