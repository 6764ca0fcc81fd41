// Ranks as threads of this process, one emulated device each.
#include <cuda_bf16.h>
#include <nccl.h>

#include <functional>
#include <thread>

#include "device_buffer.h"
#include "pipeline.h"

namespace {

class NcclTest : public CudaHostTest {
 protected:
  void SetUp() override {
    CudaHostTest::SetUp();
    cuda_host::settings().device_count = 4;
    cuda_host::settings().max_delay_us = 300;
  }

  static void on_ranks(int ranks, const std::function<void(int, ncclComm_t, cudaStream_t)>& body) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([=, &body] {
        cudaSetDevice(rank);
        ncclComm_t comm = nullptr;
        cudaStream_t stream = nullptr;
        ASSERT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        body(rank, comm, stream);
        ncclCommDestroy(comm);
        cudaStreamDestroy(stream);
      });
    }
    for (std::thread& t : threads) t.join();
  }
};

TEST_F(NcclTest, AllGatherAndReduceScatter) {
  const std::vector<std::vector<float>> shards = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  for (const auto& gathered : example::all_gather(shards)) EXPECT_EQ(gathered, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<std::vector<float>> inputs(4, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto scattered = example::reduce_scatter(inputs);
  EXPECT_EQ(scattered[0], (std::vector<float>{4, 8}));
  EXPECT_EQ(scattered[3], (std::vector<float>{28, 32}));
}

TEST_F(NcclTest, InPlaceAndOtherTypes) {
  on_ranks(3, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const DeviceBuffer<double> x(std::vector<double>(6, rank + 1.0));
    EXPECT_EQ(ncclAllReduce(x.get(), x.get(), 6, ncclDouble, ncclAvg, comm, stream), ncclSuccess);
    const DeviceBuffer<__nv_bfloat16> h(std::vector<__nv_bfloat16>(6, __float2bfloat16(static_cast<float>(rank))));
    EXPECT_EQ(ncclReduceScatter(h.get(), h.get() + 2 * rank, 2, ncclBfloat16, ncclSum, comm, stream), ncclSuccess);
    const DeviceBuffer<int> i(std::vector<int>(3, rank));
    EXPECT_EQ(ncclAllGather(i.get() + rank, i.get(), 1, ncclInt, comm, stream), ncclSuccess);
    const DeviceBuffer<float> b(std::vector<float>(2, static_cast<float>(rank)));
    EXPECT_EQ(ncclBroadcast(b.get(), b.get(), 2, ncclFloat, 2, comm, stream), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[5], 2.0);
    EXPECT_EQ(__bfloat162float(h.values()[static_cast<std::size_t>(2 * rank)]), 3.0F);
    EXPECT_EQ(i.values(), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(b.values()[1], 2.0F);
  });
}

TEST_F(NcclTest, GroupedRingExchange) {
  on_ranks(4, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const DeviceBuffer<float> out(std::vector<float>(5, static_cast<float>(rank))), in(5);
    ncclGroupStart();
    EXPECT_EQ(ncclSend(out.get(), 5, ncclFloat, (rank + 1) % 4, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(in.get(), 5, ncclFloat, (rank + 3) % 4, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(in.values()[0], static_cast<float>((rank + 3) % 4));
  });
}

TEST_F(NcclTest, SplitAndRegister) {
  on_ranks(4, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    ncclComm_t half = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, rank % 2, -rank, &half, nullptr), ncclSuccess);
    int size = 0, position = -1;
    ncclCommCount(half, &size);
    ncclCommUserRank(half, &position);
    EXPECT_EQ(size, 2);
    EXPECT_EQ(position, rank < 2 ? 1 : 0) << "ordered by key";
    const DeviceBuffer<int> x(std::vector<int>{rank});
    ncclWindow_t window = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(half, x.get(), sizeof(int), &window, NCCL_WIN_DEFAULT), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(x.get(), x.get(), 1, ncclInt, ncclSum, half, stream), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[0], rank % 2 == 0 ? 2 : 4);
    EXPECT_EQ(ncclCommWindowDeregister(half, window), ncclSuccess);
    EXPECT_EQ(ncclCommWindowDeregister(half, window), ncclInvalidArgument);
    int host = 0;
    EXPECT_EQ(ncclAllReduce(&host, x.get(), 1, ncclInt, ncclSum, half, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
  });
}

TEST_F(NcclTest, CapturedCollectiveReplays) {
  on_ranks(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const DeviceBuffer<float> x(std::vector<float>(3, rank + 1.0F));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(ncclAllReduce(x.get(), x.get(), 3, ncclFloat, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[2], 12.0F);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  });
}

TEST_F(NcclTest, MismatchNamesBothRanks) {
  cuda_host::settings().print_faults = false;
  on_ranks(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    float* x = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&x), 64);
    EXPECT_EQ(ncclAllReduce(x, x, rank == 0 ? 8 : 4, ncclFloat, ncclSum, comm, stream), ncclSuccess);
    cudaStreamSynchronize(stream);
    ncclResult_t error = ncclSuccess;
    ncclCommGetAsyncError(comm, &error);
    EXPECT_EQ(error, ncclInvalidUsage);
  });
  EXPECT_EQ(cuda_host::last_fault(),
            "mismatched collective: rank 0 calls ncclAllReduce(count 8, float32, op 0), rank 1 calls "
            "ncclAllReduce(count 4, float32, op 0)");
  EXPECT_EQ(cuda_host::reset(), 2U);
}

TEST_F(NcclTest, MissingRankTimesOut) {
  cuda_host::settings().print_faults = false;
  cuda_host::settings().nccl_timeout_ms = 200;
  on_ranks(2, [](int rank, ncclComm_t comm, cudaStream_t stream) {
    const DeviceBuffer<float> x(4);
    if (rank == 1) return;
    EXPECT_EQ(ncclAllReduce(x.get(), x.get(), 4, ncclFloat, ncclSum, comm, stream), ncclSuccess);
    cudaStreamSynchronize(stream);
    ncclResult_t error = ncclSuccess;
    ncclCommGetAsyncError(comm, &error);
    EXPECT_EQ(error, ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(comm)).find("not arrived: rank 1"), std::string::npos);
  });
}

TEST_F(NcclTest, TwoRanksOnOneDeviceAreRefused) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t a = nullptr, b = nullptr;
  ncclGroupStart();
  EXPECT_EQ(ncclCommInitRank(&a, 2, id, 0), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&b, 2, id, 1), ncclInvalidUsage);
  cuda_host::settings().nccl_timeout_ms = 50;
  EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
  ncclCommAbort(a);
  cuda_host::fail_call("ncclGetVersion", 1, ncclSystemError);
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSystemError);
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
}

}  // namespace
