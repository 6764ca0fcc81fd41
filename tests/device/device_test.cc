// What every device must do. One instance per device kind; the host reaches its memory by copies alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/device/devices.h"
#include "tests/error_of.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<unsigned char>;

constexpr StreamKind kKinds[] = {StreamKind::compute, StreamKind::gather, StreamKind::reduce};

class DeviceTest : public ::testing::TestWithParam<DeviceMaker> {
 protected:
  void SetUp() override { device->use(); }

  std::unique_ptr<DeviceMemory> upload(const Bytes& bytes) {
    auto memory = device->alloc(static_cast<int64_t>(bytes.size()));
    auto stream = device->new_stream(StreamKind::compute);
    stream->copy(memory->data(), bytes.data(), memory->bytes());
    stream->synchronize();
    return memory;
  }
  Bytes download(const DeviceMemory& memory) {
    Bytes bytes(static_cast<size_t>(memory.bytes()), 99);
    auto stream = device->new_stream(StreamKind::compute);
    stream->copy(bytes.data(), memory.data(), memory.bytes());
    stream->synchronize();
    return bytes;
  }

  std::unique_ptr<Device> device = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::ValuesIn(device_makers()), testing::PrintToStringParamName());

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

TEST_P(DeviceTest, MemoryIsAlignedZeroAndWritable) {
  auto memory = device->alloc(100001);
  EXPECT_EQ(memory->bytes(), 100001);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kArenaAlignment, 0u);
  EXPECT_TRUE(download(*memory) == Bytes(100001, 0));
  auto stream = device->new_stream(StreamKind::compute);
  stream->fill(memory->data(), 7, 100001);
  stream->synchronize();
  EXPECT_TRUE(download(*memory) == Bytes(100001, 7));
  EXPECT_NE(device->alloc(0)->data(), nullptr);
}

TEST_P(DeviceTest, MemoryOfTheHostIsReadAndWrittenByIt) {
  auto memory = device->alloc(1000), host = device->alloc_host(1000);
  ASSERT_EQ(host->bytes(), 1000);
  std::memset(host->data(), 3, 1000);
  auto stream = device->new_stream(StreamKind::compute);
  stream->copy(memory->data(), host->data(), 1000);
  stream->synchronize();
  EXPECT_TRUE(download(*memory) == Bytes(1000, 3));
}

TEST_P(DeviceTest, TooMuchMemoryIsAnErrorWithBothNumbers) {
  const int64_t bytes = int64_t{1} << 60;
  try {
    device->alloc(bytes);
    FAIL() << "2^60 bytes were given";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("bytes free"), std::string::npos) << e.what();
  }
  EXPECT_THROW(device->alloc(-1), Error);
  EXPECT_TRUE(download(*device->alloc(10)) == Bytes(10, 0));  // and the next one is given
}

TEST_P(DeviceTest, EveryStreamKeepsTheOrderOfCallsOfTheHost) {
  for (const StreamKind kind : kKinds) {
    auto stream = device->new_stream(kind);
    std::vector<int> list;
    std::vector<Append> work;
    for (int i = 0; i < 3000; ++i) work.push_back({&list, i});  // more than a ring holds
    for (Append& a : work) stream->host_call(append, &a);
    stream->synchronize();
    ASSERT_EQ(list.size(), work.size());
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(list[i], i);
  }
}

TEST_P(DeviceTest, EveryStreamKeepsTheOrderOfWhatIsLaunched) {
  struct Fill {
    Stream* stream;
    void* to;
    int value;
  };
  // The task issues work where the device has work of its own; on the CPU it is the work.
  const bool host = device->properties().host;
  for (const StreamKind kind : kKinds) {
    auto stream = device->new_stream(kind);
    auto memory = device->alloc(64);
    std::vector<Fill> work;
    for (int i = 0; i < 200; ++i) work.push_back({stream.get(), memory->data(), i});
    for (Fill& f : work)
      stream->launch(
          host ? [](void* p) { std::memset(static_cast<Fill*>(p)->to, static_cast<Fill*>(p)->value, 64); }
               : [](void* p) { static_cast<Fill*>(p)->stream->fill(static_cast<Fill*>(p)->to, static_cast<Fill*>(p)->value, 64); },
          &f);
    stream->synchronize();
    EXPECT_TRUE(download(*memory) == Bytes(64, 199));
  }
}

TEST_P(DeviceTest, CopyAndFill) {
  for (const StreamKind kind : kKinds) {
    auto stream = device->new_stream(kind);
    auto a = device->alloc(1000), b = device->alloc(1000);
    stream->fill(a->data(), 5, 999);
    stream->copy(static_cast<char*>(b->data()) + 1, a->data(), 999);
    stream->copy(b->data(), nullptr, 0);
    stream->fill(nullptr, 7, 0);
    stream->synchronize();
    const Bytes in_a = download(*a), in_b = download(*b);
    EXPECT_EQ(in_a[998], 5);
    EXPECT_EQ(in_a[999], 0);
    EXPECT_EQ(in_b[0], 0);
    EXPECT_EQ(in_b[999], 5);
  }
}

TEST_P(DeviceTest, EventsOrderStreamsAndAreReusable) {
  auto gather = device->new_stream(StreamKind::gather), reduce = device->new_stream(StreamKind::reduce);
  auto event = device->new_event(), back = device->new_event();
  std::vector<int> list;  // written by one stream at a time: the events order them
  std::vector<Append> work;
  for (int i = 0; i < 40; ++i) work.push_back({&list, i, i % 4 == 0 ? 2ms : 0ms});
  for (int i = 0; i < 40; i += 2) {
    gather->host_call(append, &work[i]);
    gather->record(*event);
    reduce->wait(*event);
    reduce->host_call(append, &work[i + 1]);
    reduce->record(*back);
    gather->wait(*back);
  }
  gather->synchronize();
  for (int i = 0; i < 40; ++i) ASSERT_EQ(list[i], i);
}

TEST_P(DeviceTest, CopiesOnOneStreamWaitForThoseOfAnother) {
  auto compute = device->new_stream(StreamKind::compute), gather = device->new_stream(StreamKind::gather);
  auto ready = device->new_event(), taken = device->new_event();
  auto slot = device->alloc(4096), all = device->alloc(20 * 4096);
  for (int i = 0; i < 20; ++i) {
    if (i > 0) gather->wait(*taken);
    gather->fill(slot->data(), i + 1, 4096);
    gather->record(*ready);
    compute->wait(*ready);
    compute->copy(static_cast<char*>(all->data()) + i * 4096, slot->data(), 4096);
    compute->record(*taken);
  }
  compute->synchronize();
  gather->synchronize();
  const Bytes got = download(*all);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i / 4096 + 1) << i;
}

TEST_P(DeviceTest, ComputeWaitsForAnotherStream) {
  auto compute = device->new_stream(StreamKind::compute), gather = device->new_stream(StreamKind::gather);
  auto event = device->new_event();
  std::vector<int> list;
  Append first{&list, 1, 20ms}, second{&list, 2};
  gather->host_call(append, &first);
  gather->record(*event);
  compute->wait(*event);
  compute->host_call(append, &second);
  compute->synchronize();
  EXPECT_EQ(list, (std::vector<int>{1, 2}));
}

TEST_P(DeviceTest, WaitForAnEventNeverRecordedReturns) {
  auto compute = device->new_stream(StreamKind::compute);
  auto event = device->new_event();
  compute->wait(*event);
  compute->synchronize();
}

TEST_P(DeviceTest, AMarkIsSetAfterEarlierWork) {
  auto stream = device->new_stream(StreamKind::compute);
  auto memory = device->alloc_host(sizeof(uint32_t));
  auto* word = static_cast<uint32_t*>(memory->data());
  *word = 0;
  struct Seen {
    const uint32_t* word;
    uint32_t before = 99;
  } seen{word};
  stream->host_call(
      [](void* p) {
        auto* s = static_cast<Seen*>(p);
        std::this_thread::sleep_for(10ms);
        s->before = *s->word;
      },
      &seen);
  stream->mark(word, 7);
  stream->synchronize();
  EXPECT_EQ(seen.before, 0u);
  EXPECT_EQ(*word, 7u);
}

// A device that issues work without cost carries it out and keeps nothing.
TEST_P(DeviceTest, WhatIsRecordedIsRepeated) {
  auto stream = device->new_stream(StreamKind::compute);
  auto from = upload(Bytes(512, 1)), to = device->alloc(512);
  stream->begin_recording();
  stream->copy(to->data(), from->data(), 512);
  stream->fill(from->data(), 2, 256);
  const auto recording = stream->end_recording();
  stream->synchronize();
  Bytes want(512, 1);
  EXPECT_TRUE(download(*to) == (recording ? Bytes(512, 0) : want));
  if (!recording) return;
  stream->replay(*recording);
  stream->synchronize();
  EXPECT_TRUE(download(*to) == want);
  stream->replay(*recording);
  stream->synchronize();
  std::fill(want.begin(), want.begin() + 256, 2);
  EXPECT_TRUE(download(*to) == want);
}

TEST_P(DeviceTest, AFailedStreamSkipsWorkAndRethrows) {
  for (const StreamKind kind : kKinds) {
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

TEST_P(DeviceTest, AFailureReachesTheStreamsThatWait) {
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

}  // namespace
}  // namespace zeroplan
