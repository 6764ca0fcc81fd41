#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace zeroplan {

// Makes every option of every command refuse an empty value, and numbers that are not written in decimal, do not fit or have the wrong
// sign; CLI11 alone takes 0x1, 010 (as 8), and -1 as 2^64 - 1.
void check_option_values(CLI::App& app);
// Throws CLI::ParseError at `--name=` without a value, which would swallow the next argument.
void check_equals_signs(int argc, char** argv);

// A line for each of these options that was given as 0, which is what it is where it is left out.
std::vector<std::string> given_as_zero(const CLI::App& command, std::initializer_list<const char*> names);

}  // namespace zeroplan
