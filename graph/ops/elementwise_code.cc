// The text form of a chain, as it stands in plans and dumps.
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/op_def.h"
#include "graph/ops/scalar_reference.h"

namespace zeroplan {

namespace {

constexpr std::string_view kConstant = "const", kTanhForm = ":tanh";

[[noreturn]] void refuse(std::string_view statement, std::string_view why) {
  throw Error(fmt::format("code has the statement '{}', which {}", statement, why));
}

// Cuts the text up to `separator` off the front of `rest`.
std::string_view cut(std::string_view& rest, std::string_view separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  return part;
}

template <typename T>
T number(std::string_view text, std::string_view statement) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(statement, fmt::format("holds '{}' where a number stands", text));
  return value;
}

ElementwiseInstruction instruction(std::string_view name, std::string_view operands, std::string_view statement) {
  ElementwiseInstruction step;
  if (name.ends_with(kTanhForm)) {
    name.remove_suffix(kTanhForm.size());
    step.approximate = 1;
  }
  step.op = parse_op(name);
  if (!is_elementwise(step.op)) refuse(statement, fmt::format("names an operator that may not stand in a chain"));
  if (step.approximate && !has_tanh_form(step.op)) refuse(statement, "names a tanh form that the operator does not have");
  int* const fields[] = {&step.a, &step.b, &step.c};
  for (int i = 0; i < elementwise_arity(step.op); ++i) *fields[i] = number<int>(cut(operands, " "), statement);
  if (!operands.empty()) refuse(statement, "names more registers than the operator takes");
  return step;
}

std::string text_of(const ElementwiseInstruction& step) {
  std::string text = fmt::format("{}{}", op_name(step.op), step.approximate ? kTanhForm : "");
  const int operands[] = {step.a, step.b, step.c};
  for (int i = 0; i < elementwise_arity(step.op); ++i) text += fmt::format(" {}", operands[i]);
  return text;
}

}  // namespace

Attributes encode_elementwise(const ElementwiseCode& code) {
  std::vector<std::string> statements;
  for (const double value : code.constants) statements.push_back(fmt::format("{} {}", kConstant, value));  // shortest that reads back
  for (const ElementwiseInstruction& step : code.instructions) statements.push_back(text_of(step));
  return {{Attr::code, fmt::format("{}", fmt::join(statements, "; "))}};
}

ElementwiseCode decode_elementwise(const Attributes& attributes) {
  ElementwiseCode code;
  std::string_view rest = attributes.get_string(Attr::code);
  while (!rest.empty()) {
    const std::string_view statement = cut(rest, "; ");
    std::string_view operands = statement;
    const std::string_view name = cut(operands, " ");
    if (name != kConstant)
      code.instructions.push_back(instruction(name, operands, statement));
    else if (code.instructions.empty())
      code.constants.push_back(number<double>(operands, statement));
    else
      refuse(statement, "comes after an instruction; constants stand first");
  }
  return code;
}

}  // namespace zeroplan
