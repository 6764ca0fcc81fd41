// A training in which one step goes wrong on one rank: what the others do is the test's (faults.sh).
//   mpi_fault MODEL list RANKS STAGE          the first step of each kind in each program: PROGRAM INDEX KIND UNIT
//   mpi_fault MODEL FAULT RANK PROGRAM INDEX STAGE    FAULT: throw, stall or kill; started by mpirun
#include <csignal>
#include <cstdio>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "runtime/mpi/mpi_backend.h"
#include "runtime/plan/dump.h"
#include "tools/console.h"
#include "tools/processes.h"

namespace zeroplan {
namespace {

constexpr int64_t kDeadline = 3000;  // milliseconds

Plan compile_for(const std::string& model, int ranks, int stage) {
  CompileOptions options;
  options.batch = 2 * ranks;
  options.ranks = ranks;
  options.stage = stage;
  options.eval = true;
  return compile(model, options);
}

void list_steps(const Plan& plan) {
  for (const PlanProgram& program : plan.programs) {
    std::set<StepKind> seen;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (!seen.insert(step.kind).second) continue;
      fmt::print("{} {} {} {}\n", program_name(program.program), i, step_kind_name(step.kind),
                 step.unit == kNone ? "none" : plan.units[step.unit].name);
    }
  }
}

struct Fault {
  std::string what, program;
  int rank = 0, index = 0;
};

void happen(const std::string& what) {
  if (what == "throw") throw std::runtime_error("injected fault");
  if (what == "kill") std::raise(SIGKILL);
  if (what == "stall") std::this_thread::sleep_for(std::chrono::minutes(10));
}

void train_and_fail(const Plan& plan, const Fault& fault, MpiJob& job) {
  ExecutorOptions options;
  options.collective_deadline_ms = kDeadline;
  options.backend = [&job](const Plan& p, std::chrono::milliseconds deadline) { return make_mpi_backend(job, p, deadline, 0); };
  options.before_step = [&](int rank, Program program, int index, const Step&) {
    if (rank == fault.rank && index == fault.index && program_name(program) == fault.program) happen(fault.what);
  };
  const std::unique_ptr<Executor> executor = make_executor(plan, options);
  const std::unique_ptr<DataSource> data = make_synthetic(plan, 1);
  RunScalars scalars;
  scalars.lr = 0.01;
  for (scalars.step = 1; scalars.step <= 2; ++scalars.step) executor->train_step(*data, 0, nullptr, scalars);
  struct Few : DataSource {
    explicit Few(const DataSource& all, int64_t count) : all_(all), count_(count) {}
    int64_t samples() const override { return count_; }
    void read(int input, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override {
      all_.read(input, first, count, order, to);
    }
    const DataSource& all_;
    int64_t count_;
  };
  executor->evaluate(Few(*data, plan.header.batch));
  executor->export_parameters([](int, const void*) {});
}

int work(const std::vector<std::string>& words, Processes& processes) {
  try {
    processes.join();
    const int stage = std::stoi(words.at(5));
    train_and_fail(compile_for(words.at(0), processes.job()->size(), stage),
                   {words.at(1), words.at(3), std::stoi(words.at(2)), std::stoi(words.at(4))}, *processes.job());
    processes.finish();
    return 0;
  } catch (const Error& error) {
    return processes.fail({error.what(), 1, error.context().rank >= 0});
  } catch (const std::exception& error) {
    return processes.fail({error.what()});
  }
}

}  // namespace
}  // namespace zeroplan

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[1] == "list") {
    zeroplan::list_steps(zeroplan::compile_for(words[0], std::stoi(words[2]), std::stoi(words[3])));
    return 0;
  }
  zeroplan::Processes processes("train");
  return zeroplan::work(words, processes);
}
