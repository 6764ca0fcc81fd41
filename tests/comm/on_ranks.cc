#include <gtest/gtest.h>

#include <thread>

#include "comm_kind.h"

namespace zeroplan::test {

std::vector<std::string> on_ranks(const CommKind& kind, int n, std::chrono::milliseconds deadline,
                                  const std::function<void(RankContext)>& work) {
  const Devices devices = kind.devices(n);
  auto comms = kind.make(devices, deadline);
  std::vector<std::string> errors(n);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      devices[r]->use();
      auto stream = devices[r]->new_stream(r % 2 == 0 ? StreamKind::gather : StreamKind::compute);
      try {
        work({r, *comms[r], *stream, *devices[r]});
        stream->synchronize();
      } catch (const std::exception& e) {
        errors[r] = e.what();
      }
    });
  }
  for (auto& t : threads) t.join();
  return errors;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const auto& e : errors) EXPECT_EQ(e, "");
}

}  // namespace zeroplan::test
