#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace zeroplan {

// The parse error in words, with the nearest existing option or command where a word is unknown.
std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace zeroplan
