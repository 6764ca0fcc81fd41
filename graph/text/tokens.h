#pragma once
// The words of the text form, written and read.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace zeroplan {

std::string quote(std::string_view text);       // "…" with \" \\ \n \t \r \xNN
std::string value_word(std::string_view name);  // %name, or %"…" where the name needs quotes
std::string number_word(double value);          // shortest form that reads back to the same value; never looks like an integer
std::string hex_bytes(const std::byte* data, int64_t bytes);

// Reads the words of one line. Every reader skips blanks first and throws Error naming the line where it finds something else.
class Scanner {
 public:
  Scanner(std::string_view line, int64_t number) : line_(line), number_(number) {}

  bool at_end();  // only blanks or a comment left
  bool peek(char c);
  bool accept(std::string_view token);  // a word only as a whole
  void expect(std::string_view token);
  std::string word();  // letters, digits, _
  std::string quoted();
  std::string value_name();  // of %name
  int64_t integer();
  int64_t integer(int64_t low, int64_t high);  // within these ends
  uint64_t natural();
  int32_t index();  // 0 or more
  double number();
  float float_number();  // rounded once, from the digits
  // Text of a number, undecided: floating if it holds more than digits and a sign.
  std::string_view number_text();
  DType dtype();
  std::vector<int64_t> integers();            // [1,2]
  void bytes(std::byte* out, int64_t count);  // hex
  int64_t remaining() const { return static_cast<int64_t>(line_.size() - std::min(position_, line_.size())); }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  void skip_blanks();
  char at(size_t i) const { return i < line_.size() ? line_[i] : '\0'; }
  char escaped();
  int hex_digit();
  template <typename T>
  T parse_number(std::string_view what);

  std::string_view line_;
  int64_t number_;
  size_t position_ = 0;
};

}  // namespace zeroplan
