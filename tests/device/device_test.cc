// What every device must do. One instance per device kind.
#include "runtime/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/error_of.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;

class DeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device = make_cpu_device(1);
};

struct Append {
  std::vector<int>* list;
  int value;
  std::chrono::milliseconds delay{0};
};

void append(void* p) {
  auto* a = static_cast<Append*>(p);
  std::this_thread::sleep_for(a->delay);
  a->list->push_back(a->value);
}

void fail(void* p) { throw std::runtime_error(static_cast<const char*>(p)); }

std::string failure(Stream& stream) {
  return error_of<std::exception>([&] { stream.synchronize(); });
}

TEST_F(DeviceTest, MemoryIsAlignedZeroAndWritable) {
  auto memory = device->alloc(100001);
  EXPECT_EQ(memory->bytes(), 100001);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 4096, 0u);
  auto* bytes = static_cast<unsigned char*>(memory->data());
  for (int64_t i = 0; i < memory->bytes(); ++i) ASSERT_EQ(bytes[i], 0);
  std::memset(bytes, 7, 100001);
  EXPECT_NE(device->alloc(0)->data(), nullptr);
}

TEST_F(DeviceTest, TooMuchMemoryIsAnErrorWithBothNumbers) {
  const int64_t bytes = int64_t{1} << 60;
  try {
    device->alloc(bytes);
    FAIL() << "2^60 bytes were given";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("bytes free"), std::string::npos) << e.what();
  }
  EXPECT_THROW(device->alloc(-1), Error);
}

TEST_F(DeviceTest, EveryStreamKeepsOrder) {
  for (StreamKind kind : {StreamKind::compute, StreamKind::gather, StreamKind::reduce}) {
    auto stream = device->new_stream(kind);
    std::vector<int> list;
    std::vector<Append> work;
    for (int i = 0; i < 3000; ++i) work.push_back({&list, i});  // more than a ring holds
    for (Append& a : work) stream->launch(append, &a);
    stream->synchronize();
    ASSERT_EQ(list.size(), work.size());
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(list[i], i);
  }
}

TEST_F(DeviceTest, CopyAndFill) {
  for (StreamKind kind : {StreamKind::compute, StreamKind::gather}) {
    auto stream = device->new_stream(kind);
    std::vector<char> a(1000), b(1000);
    stream->fill(a.data(), 5, 999);
    stream->copy(b.data() + 1, a.data(), 999);
    stream->copy(b.data(), nullptr, 0);
    stream->fill(nullptr, 7, 0);
    stream->synchronize();
    EXPECT_EQ(a[998], 5);
    EXPECT_EQ(a[999], 0);
    EXPECT_EQ(b[0], 0);
    EXPECT_EQ(b[999], 5);
  }
}

TEST_F(DeviceTest, EventsOrderStreamsAndAreReusable) {
  auto gather = device->new_stream(StreamKind::gather), reduce = device->new_stream(StreamKind::reduce);
  auto event = device->new_event();
  std::vector<int> list;  // written by one stream at a time: the events order them
  std::vector<Append> work;
  for (int i = 0; i < 40; ++i) work.push_back({&list, i, i % 4 == 0 ? 2ms : 0ms});
  auto back = device->new_event();
  for (int i = 0; i < 40; i += 2) {
    gather->launch(append, &work[i]);
    gather->record(*event);
    reduce->wait(*event);
    reduce->launch(append, &work[i + 1]);
    reduce->record(*back);
    gather->wait(*back);
  }
  gather->synchronize();
  for (int i = 0; i < 40; ++i) ASSERT_EQ(list[i], i);
}

TEST_F(DeviceTest, ComputeWaitsForAnotherStream) {
  auto compute = device->new_stream(StreamKind::compute), gather = device->new_stream(StreamKind::gather);
  auto event = device->new_event();
  std::vector<int> list;
  Append first{&list, 1, 20ms}, second{&list, 2};
  gather->launch(append, &first);
  gather->record(*event);
  compute->wait(*event);
  compute->launch(append, &second);
  compute->synchronize();
  EXPECT_EQ(list, (std::vector<int>{1, 2}));
}

TEST_F(DeviceTest, WaitForAnEventNeverRecordedReturns) {
  auto compute = device->new_stream(StreamKind::compute);
  auto event = device->new_event();
  compute->wait(*event);
  compute->synchronize();
}

TEST_F(DeviceTest, AFailedStreamSkipsWorkAndRethrows) {
  for (StreamKind kind : {StreamKind::compute, StreamKind::gather}) {
    auto stream = device->new_stream(kind);
    std::vector<int> list;
    Append a{&list, 1}, b{&list, 2};
    stream->launch(append, &a);
    stream->launch(fail, const_cast<char*>("first"));
    stream->launch(append, &b);
    stream->launch(fail, const_cast<char*>("second"));
    EXPECT_EQ(failure(*stream), "first");
    EXPECT_EQ(failure(*stream), "first");
    EXPECT_EQ(list, std::vector<int>{1});
    auto event = device->new_event();
    EXPECT_THROW(stream->wait(*event), std::runtime_error);
  }
}

TEST_F(DeviceTest, AFailureReachesTheStreamsThatWait) {
  auto gather = device->new_stream(StreamKind::gather), reduce = device->new_stream(StreamKind::reduce);
  auto compute = device->new_stream(StreamKind::compute);
  auto event = device->new_event(), second = device->new_event();
  std::vector<int> list;
  Append a{&list, 1};
  gather->launch(fail, const_cast<char*>("gather broke"));
  gather->record(*event);
  try {
    reduce->wait(*event);
  } catch (const std::runtime_error&) {  // where the failure is known already
  }
  reduce->launch(append, &a);
  reduce->record(*second);
  EXPECT_THROW(compute->wait(*second), std::runtime_error);
  compute->launch(append, &a);
  EXPECT_EQ(failure(*reduce), "gather broke");
  EXPECT_EQ(failure(*compute), "gather broke");
  EXPECT_TRUE(list.empty());
}

TEST_F(DeviceTest, ComputeRunsOnTheIssuingThreadOthersDoNot) {
  auto identify = [](void* p) { *static_cast<std::thread::id*>(p) = std::this_thread::get_id(); };
  auto compute = device->new_stream(StreamKind::compute), gather = device->new_stream(StreamKind::gather);
  std::thread::id on_compute, on_gather;
  compute->launch(identify, &on_compute);
  gather->launch(identify, &on_gather);
  gather->synchronize();
  EXPECT_EQ(on_compute, std::this_thread::get_id());
  EXPECT_NE(on_gather, std::this_thread::get_id());
}

TEST(CpuDevice, NamesItself) {
  EXPECT_NE(make_cpu_device(2)->properties().name.find("cpu"), std::string::npos);
  EXPECT_GT(make_cpu_device(2)->properties().memory_bytes, 1 << 20);
  EXPECT_THROW(make_cpu_device(0), Error);
}

}  // namespace
}  // namespace zeroplan
