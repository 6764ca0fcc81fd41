#include "tools/progress.h"

#include <unistd.h>
#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "tools/console.h"
#include "tools/metrics_writer.h"

namespace zeroplan {
namespace {

constexpr int kBarWidth = 24;

// The first ten steps, then about twenty lines in all, the last step, and every evaluation.
bool worth_a_line(const RunEvent& event) {
  const int64_t done = event.step->step;
  return done <= 10 || done == event.steps || event.eval || event.step->skipped || done % std::max<int64_t>(event.steps / 20, 1) == 0;
}

}  // namespace

Progress::Progress(const Plan& plan, bool launched)
    : terminal_(!launched && isatty(STDOUT_FILENO)), tokens_per_sample_(tokens_per_sample(plan)) {}

std::string Progress::details(const RunEvent& event) const {
  const StepReport& step = *event.step;
  const int64_t units = step.samples * (tokens_per_sample_ > 0 ? tokens_per_sample_ : 1);
  const auto loss_text = [](double loss) { return std::abs(loss) < 1e6 ? fmt::format("{:.6f}", loss) : fmt::format("{:.6e}", loss); };
  std::string text =
      fmt::format("loss {}  norm {:.4g}  lr {:.3g}  {:.1f} ms  {:.0f} {}/s", loss_text(step.loss), step.grad_norm, event.lr, step.step_ms,
                  static_cast<double>(units) * 1000 / step.step_ms, tokens_per_sample_ > 0 ? "tokens" : "samples");
  if (step.clip_factor < 1) text += fmt::format("  clipped ×{:.3g}", step.clip_factor);
  if (!step.overflow.empty())
    text += fmt::format("  skipped: the gradient of {} overflowed float16 with loss scale {:g}, which is halved", step.overflow,
                        step.loss_scale);
  else if (step.skipped)
    text += "  skipped: nothing was updated (no sample counted)";
  if (event.eval)
    text += fmt::format("  eval loss {} ({} of {})", loss_text(event.eval->loss), event.eval->samples,
                        counted(event.eval->samples + event.eval_unused, "sample"));
  if (event.eval && event.eval->weight == 0) text += "  no label counted";
  return text;
}

void Progress::show(const RunEvent& event) {
  skipped_ += event.step->skipped;
  const int64_t done = event.step->step;
  if (!terminal_) {
    if (worth_a_line(event)) say("step {}/{}  {}\n", done, event.steps, details(event));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!event.eval && done != event.steps && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const int filled = static_cast<int>(done * kBarWidth / event.steps);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? "█" : "·";
  write_console(fmt::format("\r\033[K{} {}/{}  {}{}", bar, done, event.steps, details(event), event.eval ? "\n" : ""));
  open_line_ = !event.eval;
}

void Progress::finish(const RunResult& result) {
  if (open_line_) say("\n");
  if (result.stopped) say("stopped after {}\n", counted(result.steps_done, "step"));
  if (skipped_ > 0)
    say("{} of {} skipped{}\n", skipped_, counted(result.steps_done, "step"), skipped_ == result.steps_done ? ": nothing was trained" : "");
}

}  // namespace zeroplan
