#pragma once
// What the user sees: standard output and messages.
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace zeroplan {

// Text that any terminal may show: bytes that are no UTF-8, and control characters other than \n and \t, as \xNN.
std::string readable(std::string_view text);
// The same, with … in place of the middle of a word over 200 characters or of a line over 2000: names in files have any length.
std::string readable_message(std::string_view text);

// To standard output. Never throws: console_problem() knows what could not be written.
void write_console(std::string_view text);
template <typename... T>
void say(fmt::format_string<T...> format, T&&... values) {
  write_console(readable(fmt::format(format, std::forward<T>(values)...)));
}
// From now on nothing goes to standard output: another process speaks for all.
void silence_console();
// Flushes; why standard output could not take everything written so far, empty where it could.
std::string console_problem();
// "zeroplan: <message>" to the standard error stream.
void complain(std::string_view message);

// At the start: a standard stream that is closed stays without effect, instead of becoming the next file that is opened.
void hold_closed_streams();

}  // namespace zeroplan
