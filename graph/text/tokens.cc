#include "graph/text/tokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_name(char c) { return is_word(c) || c == '.' || c == '-' || c == '/' || c == '\''; }
bool is_number(char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; }

}  // namespace

std::string quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  out += '"';
  return out;
}

std::string value_word(std::string_view name) {
  bool plain = !name.empty();
  for (char c : name) plain &= is_name(c);
  std::string word = "%";
  word += plain ? std::string(name) : quote(name);
  return word;
}

std::string number_word(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string hex_bytes(const std::byte* data, int64_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(2 * bytes, '\0');
  for (int64_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned>(data[i]);
    out[2 * i] = kDigits[byte >> 4];
    out[2 * i + 1] = kDigits[byte & 15];
  }
  return out;
}

void Scanner::fail(std::string_view what) const {
  const std::string_view rest = line_.substr(std::min(position_, line_.size()));
  const std::string where = rest.empty() ? "at the end" : fmt::format("at '{}'", rest.substr(0, 40));
  throw Error(fmt::format("line {}: {} {}", number_, what, where));
}

void Scanner::skip_blanks() {
  while (at(position_) == ' ' || at(position_) == '\t' || at(position_) == '\r') ++position_;
}

bool Scanner::at_end() {
  skip_blanks();
  return position_ >= line_.size() || line_[position_] == '#';
}

bool Scanner::peek(char c) {
  skip_blanks();
  return at(position_) == c;
}

bool Scanner::accept(std::string_view token) {
  skip_blanks();
  if (line_.substr(position_, token.size()) != token) return false;
  if (is_word(token.back()) && is_word(at(position_ + token.size()))) return false;
  position_ += token.size();
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected '{}'", token));
}

std::string Scanner::word() {
  skip_blanks();
  const size_t begin = position_;
  while (is_word(at(position_))) ++position_;
  if (position_ == begin) fail("expected a word");
  return std::string(line_.substr(begin, position_ - begin));
}

int Scanner::hex_digit() {
  const char c = at(position_);
  const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  if (value < 0) fail("expected a hex digit");
  ++position_;
  return value;
}

char Scanner::escaped() {
  const char c = at(position_++);
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"':
    case '\\': return c;
    case 'x': {
      const int high = hex_digit();
      return static_cast<char>(high * 16 + hex_digit());
    }
    default: --position_; fail("unknown escape");
  }
}

std::string Scanner::quoted() {
  expect("\"");
  std::string out;
  while (position_ < line_.size() && line_[position_] != '"') {
    const char c = line_[position_++];
    out += c == '\\' ? escaped() : c;
  }
  if (position_ >= line_.size()) fail("a quoted text does not end");
  ++position_;
  return out;
}

std::string Scanner::value_name() {
  expect("%");
  if (at(position_) == '"') return quoted();
  const size_t begin = position_;
  while (is_name(at(position_))) ++position_;
  if (position_ == begin) fail("expected a value name");
  return std::string(line_.substr(begin, position_ - begin));
}

std::string_view Scanner::number_text() {
  skip_blanks();
  const size_t begin = position_;
  while (is_number(at(position_))) ++position_;
  if (position_ == begin) fail("expected a number");
  return line_.substr(begin, position_ - begin);
}

template <typename T>
T Scanner::parse_number(std::string_view what) {
  const std::string_view text = number_text();
  T value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end()) fail(fmt::format("'{}' is not a {};", text, what));
  return value;
}

int64_t Scanner::integer() { return parse_number<int64_t>("64-bit integer"); }

int64_t Scanner::integer(int64_t low, int64_t high) {
  const int64_t value = integer();
  if (value < low || value > high) fail(fmt::format("{} lies outside {} … {};", value, low, high));
  return value;
}

uint64_t Scanner::natural() { return parse_number<uint64_t>("64-bit integer without sign"); }

int32_t Scanner::index() {
  const int64_t value = integer();
  if (value < 0 || value > std::numeric_limits<int32_t>::max()) fail(fmt::format("{} is not an index;", value));
  return static_cast<int32_t>(value);
}

double Scanner::number() { return parse_number<double>("number"); }
float Scanner::float_number() { return parse_number<float>("number"); }

DType Scanner::dtype() {
  const std::string name = word();
  try {
    return parse_dtype(name);
  } catch (const Error& error) {
    fail(error.message());
  }
}

std::vector<int64_t> Scanner::integers() {
  std::vector<int64_t> values;
  expect("[");
  if (accept("]")) return values;
  do values.push_back(integer());
  while (accept(","));
  expect("]");
  return values;
}

void Scanner::bytes(std::byte* out, int64_t count) {
  skip_blanks();
  for (int64_t i = 0; i < count; ++i) {
    const int high = hex_digit();
    out[i] = static_cast<std::byte>(high * 16 + hex_digit());
  }
}

}  // namespace zeroplan
