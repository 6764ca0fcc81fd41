#include "tools/metrics_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tools/console.h"

namespace zeroplan {

int64_t tokens_per_sample(const Plan& plan) {
  for (const PlanInput& input : plan.inputs)
    if (!is_floating(input.dtype) && !input.label && input.sample_axis >= 0 && input.shape.size() > 1)
      return elements(input.shape) / input.shape[input.sample_axis];
  return 0;
}

namespace {

constexpr size_t kLongestName = 128;

std::string quoted(const std::string& name) {
  return nlohmann::json(name.substr(0, kLongestName)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& path, const Plan& plan) : path_(path), tokens_per_sample_(tokens_per_sample(plan)) {
  arena_bytes_ = std::accumulate(plan.arena_bytes.begin(), plan.arena_bytes.end(), int64_t{0});
  if (path.empty()) return;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error(fmt::format("cannot write metrics to {}: {}", path, std::strerror(errno)));
  try {
    take_file();
  } catch (const Error&) {
    close(file_);
    throw;
  }
}

MetricsWriter::~MetricsWriter() {
  if (file_ >= 0) close(file_);
}

// Locks and empties a file of its own; pipes and devices may be shared. A file system without locks still appends whole lines.
void MetricsWriter::take_file() const {
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(fmt::format("--metrics {} is being written by another run; give each run a file of its own", path_));
  if (ftruncate(file_, 0) != 0) throw Error(fmt::format("cannot write metrics to {}: {}", path_, std::strerror(errno)));
}

// Formats into a fixed buffer: nothing is allocated during a run. JSON has no NaN; a value that is not finite is written as null.
void MetricsWriter::write(const RunEvent& event) {
  if (file_ < 0) return;
  char line[2048];
  char* end = line;
  const auto number = [&](const char* name, double value) {
    end = std::isfinite(value) ? fmt::format_to(end, "\"{}\": {:.17g}, ", name, value) : fmt::format_to(end, "\"{}\": null, ", name);
  };
  const StepReport& step = *event.step;
  const double per_second = step.step_ms > 0 ? 1000.0 * static_cast<double>(step.samples) / step.step_ms : 0;
  end = fmt::format_to(end, "{{\"step\": {}, ", step.step);
  number("loss", step.loss);
  number("weight", step.weight);
  if (event.eval) {
    number("eval_loss", event.eval->loss);
    number("eval_weight", event.eval->weight);
    end = fmt::format_to(end, "\"eval_samples\": {}, \"eval_samples_left_out\": {}, ", event.eval->samples, event.eval_unused);
  }
  number("grad_norm", step.grad_norm);
  number("clipped_norm", step.clipped_norm);
  number("clip_factor", step.clip_factor);
  if (step.loss_scale > 0) number("loss_scale", step.loss_scale);
  if (!step.overflow.empty()) end = fmt::format_to(end, "\"overflow\": {}, ", quoted(step.overflow));
  number("lr", event.lr);
  number("step_ms", step.step_ms);
  number("compute_ms", step.compute_ms);
  number("exposed_comm_ms", step.exposed_comm_ms);
  number("data_ms", step.data_ms);
  number("samples_per_second", per_second);
  if (tokens_per_sample_ > 0) number("tokens_per_second", per_second * static_cast<double>(tokens_per_sample_));
  end = fmt::format_to(end, "\"skipped\": {}, \"slowest_rank\": {}, \"arena_bytes\": {}, \"arena_high_water\": {}}}\n", step.skipped,
                       step.slowest_rank, arena_bytes_, step.arena_high_water);
  append({line, static_cast<size_t>(end - line)}, step.step);
}

void MetricsWriter::append(std::string_view line, int64_t step) {
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t wrote = ::write(file_, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return give_up(step, errno);
    rest.remove_prefix(static_cast<size_t>(wrote));
  }
  whole_ += static_cast<int64_t>(line.size());
}

// What is trained is worth more than its log. The file ends with a whole line; a pipe or a device has what it has.
void MetricsWriter::give_up(int64_t step, int error) {
  problem_ = fmt::format("--metrics {} has no line from step {} on", path_, step);
  [[maybe_unused]] const int cut = ftruncate(file_, whole_);
  complain(fmt::format("cannot write metrics to {}: {}; the run goes on without them", path_, std::strerror(error)));
  close(file_);
  file_ = -1;
}

}  // namespace zeroplan
