#include "tools/suggest.h"

#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"

namespace zeroplan {
namespace {

std::vector<std::string> known_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) words.push_back(sub->get_name());
  return words;
}

// Another command that has this option, empty where none does.
std::string command_with(const std::string& word, const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (const std::string& name : known_words(*command))
      if (name == word) return command->get_name();
  return {};
}

const CLI::App& active_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

std::string accepted_form(const std::string& type, const std::string& value) {
  const bool whole = type.find("INT") != std::string::npos;
  if (whole && value > "0" && value[0] != '0' && value.find_first_not_of("0123456789") == std::string::npos) return "is too large";
  if (whole) return "must be a whole number, in digits alone and without a leading 0 (1000)";
  return type.find("FLOAT") != std::string::npos ? "must be a number (0.001, 1e-3)" : "must not be empty";
}

// CLI11's text in words. "Could not convert: --ranks = auto": what the option takes, from its type and its description.
std::string explain_value(const CLI::App& command, const std::string& text) {
  const std::string twice = ": At Most 1 required but received ";
  if (const size_t at = text.find(twice); at != std::string::npos)
    return fmt::format("{} is given {} times; give it once", text.substr(0, at), text.substr(at + twice.size()));
  const std::string start = "Could not convert: ";
  if (text.rfind(start, 0) != 0) return text;
  const std::string name = text.substr(start.size(), text.find(' ', start.size()) - start.size());
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return text;
  const size_t equals = text.find(" = ");
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 3);
  return fmt::format("{} {}: {}; it is: {}", name, value.empty() ? "''" : value, accepted_form(option->get_type_name(), value),
                     option->get_description());
}

}  // namespace

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = active_command(app);
  std::string text = explain_value(command, error.what());
  const std::vector<std::string> unknown = command.remaining(true);
  for (const std::string& argument : unknown) {
    const std::string word = argument.substr(0, argument.find('='));
    const std::string close = nearest(word, known_words(command)), owner = command_with(word, app);
    if (!owner.empty() && (close.empty() || edit_distance(word, close) > 1)) {
      text += fmt::format("\n  {} belongs to `zeroplan {}`{}", word, owner, command.get_name() == "run" ? "; a plan has it fixed" : "");
      continue;
    }
    if (!close.empty()) text += fmt::format("\n  did you mean {} instead of {}?", close, word);
  }
  const std::string name = &command == &app ? "" : " " + command.get_name();
  return text + fmt::format("\n  `zeroplan{} --help` lists what there is", name);
}

}  // namespace zeroplan
