#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/shape.h"
#include "passes/compile_options.h"

namespace zeroplan {

// The compile options of a command line, as text until finish() has checked them.
class CompileArguments {
 public:
  // Declares the options on a subcommand.
  void declare(CLI::App& command);
  // Throws ErrorList naming each option, its value and what is allowed. `ranks`: where --ranks is not given.
  CompileOptions finish(int ranks = 1) const;

 private:
  CLI::App* command_ = nullptr;
  CompileOptions options_;
  std::vector<std::string> dims_, sample_axes_, bound_, loss_map_;
  std::string device_ = "cpu";
  std::string optimizer_ = "adamw";
  std::string precision_ = "fp32";
  std::string reduce_dtype_ = "fp32";
  std::string reduce_ = "ordered";
};

// Declares an option of a later stage of growth: given, it is refused by name.
void declare_later_option(CLI::App& command, const std::string& name, const std::string& what);

}  // namespace zeroplan
