#include "tools/option_values.h"

#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace zeroplan {
namespace {

template <typename T>
bool reads_as(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text.starts_with('0');
}

bool fits_type(const std::string& type, const std::string& text) {
  if (text.empty()) return false;
  if (type.find("INT") != std::string::npos && leading_zero(text)) return false;
  if (type.find("UINT") != std::string::npos) return reads_as<uint64_t>(text);
  if (type.find("INT") != std::string::npos) return reads_as<int64_t>(text);
  return type.find("FLOAT") == std::string::npos || reads_as<double>(text);
}

void check_option(CLI::Option& option) {
  if (option.get_expected_min() == 0) return;  // a flag
  option.check(CLI::Validator(
      [&option](const std::string& text) {
        if (!fits_type(option.get_type_name(), text)) throw CLI::ConversionError(option.get_name(), std::vector{text});
        return std::string();
      },
      ""));
}

}  // namespace

void check_option_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options()) check_option(*option);
}

void check_equals_signs(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument.starts_with("--") && equals > 2 && equals + 1 == argument.size())
      throw CLI::ArgumentMismatch(fmt::format("{} has no value behind the =", argument));
  }
}

std::vector<std::string> given_as_zero(const CLI::App& command, std::initializer_list<const char*> names) {
  std::vector<std::string> problems;
  for (const char* name : names)
    if (command.count(name) > 0 && command.get_option(name)->as<int64_t>() == 0)
      problems.push_back(fmt::format("{} 0: must be 1 or more; leave it out for the default", name));
  return problems;
}

}  // namespace zeroplan
