#include "base/patterns.h"

#include <memory>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/error.h"

namespace zeroplan {

struct Patterns::Compiled {
  std::unique_ptr<RE2> expression;
  bool used = false;
};

Patterns::Patterns(std::string option, const std::vector<std::string>& patterns) : option_(std::move(option)) {
  for (const std::string& text : patterns) {
    compiled_.push_back({std::make_unique<RE2>(text, RE2::Quiet), false});
    const RE2& expression = *compiled_.back().expression;
    if (!expression.ok()) throw Error(fmt::format("{} '{}' is not a regular expression: {}", option_, text, expression.error()));
  }
}

Patterns::~Patterns() = default;

std::optional<Patterns::Match> Patterns::find(const std::string& name) {
  std::optional<Match> first;
  for (size_t i = 0; i < compiled_.size(); ++i) {
    re2::StringPiece text;
    if (!compiled_[i].expression->Match(name, 0, name.size(), RE2::UNANCHORED, &text, 1)) continue;
    compiled_[i].used = true;
    if (!first) first = {static_cast<int>(i), std::string(text)};
  }
  return first;
}

bool Patterns::matches(const std::string& name) { return find(name).has_value(); }

std::vector<std::string> Patterns::unused() const {
  std::vector<std::string> lines;
  for (const Compiled& c : compiled_)
    if (!c.used)
      lines.push_back(fmt::format("{} '{}' matches no parameter; `inspect` lists their names", option_, c.expression->pattern()));
  return lines;
}

}  // namespace zeroplan
