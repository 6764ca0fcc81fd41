#include "tools/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace zeroplan {
namespace {

constexpr size_t kLongestWord = 200, kLongestLine = 2000;
bool silent = false;

uint8_t byte_at(std::string_view text, size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0; }

// Bytes of the printable UTF-8 character at the front (RFC 3629), 0 where there is none.
size_t printable_bytes(std::string_view text) {
  const uint8_t first = byte_at(text, 0), second = byte_at(text, 1);
  if (first < 0x80) return (first >= 0x20 && first != 0x7F) || first == '\n' || first == '\t' ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  const bool control = first == 0xC2 && second < 0xA0, surrogate = first == 0xED && second >= 0xA0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90), beyond = first == 0xF4 && second >= 0x90;
  return control || surrogate || overlong || beyond ? 0 : length;
}

// Start of the UTF-8 character that holds the byte at `at`.
size_t border(std::string_view text, size_t at) {
  while (at > 0 && (byte_at(text, at) & 0xC0) == 0x80) --at;
  return at;
}

// Valid UTF-8 without its middle: the first three quarters of `longest` and the last quarter, by bytes.
std::string shortened(std::string_view text, size_t longest) {
  if (text.size() <= longest) return std::string(text);
  const size_t head = border(text, longest * 3 / 4), tail = border(text, text.size() - longest / 4);
  return fmt::format("{}…{}", text.substr(0, head), text.substr(tail));
}

// Every piece between separators shortened.
std::string shorten_pieces(std::string_view text, const char* separators, size_t longest) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    out += shortened(text.substr(0, end), longest);
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string readable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = printable_bytes(text);
    if (length == 0)
      fmt::format_to(std::back_inserter(out), "\\x{:02X}", byte_at(text, 0));
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string readable_message(std::string_view text) {
  return shorten_pieces(shorten_pieces(readable(text), " \n\t,", kLongestWord), "\n", kLongestLine);
}

void write_console(std::string_view text) {
  if (!silent) std::fwrite(text.data(), 1, text.size(), stdout);
}

void silence_console() { silent = true; }

std::string console_problem() {
  if (std::fflush(stdout) != 0) return std::strerror(errno);
  return std::ferror(stdout) != 0 ? "an earlier write failed" : "";
}

void complain(std::string_view message) {
  std::fflush(stdout);
  std::fputs(("zeroplan: " + readable_message(message) + "\n").c_str(), stderr);
}

void hold_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace zeroplan
