#pragma once
// The one exception of zeroplan, and check() for conditions that only a bug can break.
#include <stdexcept>
#include <string>
#include <vector>

namespace zeroplan {

// Where an error happened. Empty strings and negative numbers are unknown and not printed.
struct ErrorContext {
  int rank = -1;
  int64_t step = -1;         // optimizer step, from 1; 0: before the first
  int64_t micro_batch = -1;  // number v within the step
  int plan_op = -1;          // index of the step within its program
  std::string program;       // program of the plan
  std::string op;            // operator or step name
  std::string node;          // node of the model
  std::string unit;
  std::string parameters;  // names, comma separated
};

// Carries a message that names what is wrong and what to change. what() is the message followed by the context.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string message, ErrorContext context = {});
  const std::string& message() const { return message_; }
  const ErrorContext& context() const { return context_; }
  // The same error with every field filled that is still unknown here and known in `outer`.
  Error within(const ErrorContext& outer) const;

 private:
  std::string message_;
  ErrorContext context_;
};

// All problems found in one input, thrown together; what() lists one per line.
class ErrorList : public Error {
 public:
  ErrorList(std::string heading, std::vector<std::string> problems);
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// Throws std::logic_error with the place if `condition` is false: a bug in zeroplan, never bad input.
void check(bool condition, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace zeroplan
