#pragma once
// The regular expressions that one command-line option names parameters with, found anywhere in a name.
#include <optional>
#include <string>
#include <vector>

namespace zeroplan {

// Throws Error naming the option on a malformed one.
class Patterns {
 public:
  Patterns(std::string option, const std::vector<std::string>& patterns);
  ~Patterns();
  Patterns(const Patterns&) = delete;
  Patterns& operator=(const Patterns&) = delete;
  bool matches(const std::string& name);  // marks the patterns that match as used
  // The first of the patterns that match, and the text that it matches; marks.
  struct Match {
    int pattern = 0;
    std::string text;
  };
  std::optional<Match> find(const std::string& name);
  std::vector<std::string> unused() const;  // problem lines

 private:
  struct Compiled;
  std::string option_;
  std::vector<Compiled> compiled_;
};

}  // namespace zeroplan
