#include "graph/text/parser.h"

#include <fmt/format.h>

#include "graph/ops/op_def.h"
#include "graph/text/text.h"

namespace zeroplan {

Graph parse_graph(const std::string& text) { return Parser().run(text); }

Graph Parser::run(std::string_view text) {
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Scanner line(text.substr(0, end), ++number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.at_end()) parse_line(line);
  }
  graph_.reindex();
  return std::move(graph_);
}

void Parser::parse_line(Scanner& line) {
  Scanner ahead = line;
  const Rule rule = line.peek('%') ? nullptr : find_rule(ahead.word());
  if (rule) {
    line = ahead;
    (this->*rule)(line);
  } else {
    parse_node(line);
  }
  if (!line.at_end()) line.fail("nothing more was expected");
}

Parser::Rule Parser::find_rule(const std::string& word) {
  constexpr std::pair<std::string_view, Rule> kRules[] = {
      {"parameter", &Parser::parse_parameter},
      {"quantized", &Parser::parse_quantized},
      {"alias", &Parser::parse_alias},
      {"split_use", &Parser::parse_split_use},
      {"role_reason", &Parser::parse_role_reason},
      {"dead", &Parser::parse_leaf<ValueKind::computed>},
      {"input", &Parser::parse_leaf<ValueKind::input>},
      {"constant", &Parser::parse_leaf<ValueKind::constant>},
      {"weight", &Parser::parse_leaf<ValueKind::parameter>},
      {"state", &Parser::parse_leaf<ValueKind::state>},
      {"unit", &Parser::parse_unit},
      {"member", &Parser::parse_member},
      {"program", &Parser::parse_program},
      {"inputs", &Parser::parse_inputs},
      {"output", &Parser::parse_output},
      {"loss", &Parser::parse_loss},
      {"eval_loss", &Parser::parse_eval_loss},
      {"gradient", &Parser::parse_gradient},
      {"state_update", &Parser::parse_state_update},
      {"statistics", &Parser::parse_statistics},
      {"source", &Parser::parse_source},
  };
  for (const auto& [name, rule] : kRules)
    if (name == word) return rule;
  return nullptr;
}

int64_t Parser::integer_field(Scanner& line, std::string_view name) {
  line.expect(name);
  line.expect("=");
  return line.integer();
}

std::string Parser::text_field(Scanner& line, std::string_view name) {
  line.expect(name);
  line.expect("=");
  return line.quoted();
}

ValueId Parser::ref_field(Scanner& line, std::string_view name) {
  line.expect(name);
  line.expect("=");
  return ref(line);
}

bool Parser::trainable(Scanner& line) {
  if (line.accept("trainable")) return true;
  line.expect("frozen");
  return false;
}

Placement Parser::placement(Scanner& line, std::string_view name) {
  line.expect(name);
  line.expect("=");
  if (line.accept("sharded")) return Placement::sharded;
  line.expect("replicated");
  return Placement::replicated;
}

Program Parser::program(Scanner& line) {
  const std::string name = line.word();
  for (int i = 0; i < kPrograms; ++i)
    if (program_name(static_cast<Program>(i)) == name) return static_cast<Program>(i);
  line.fail(fmt::format("'{}' is not a program;", name));
}

OpKind Parser::op(Scanner& line) {
  return located(line, [&] { return parse_op(line.word()); });
}

Shape Parser::shape(Scanner& line) {
  Shape dims = line.integers();
  located(line, [&] { return elements(dims); });
  return dims;
}

ValueId Parser::ref(Scanner& line) {
  if (line.accept("-")) return kNone;
  const std::string name = line.value_name();
  const auto found = ids_.find(name);
  if (found == ids_.end()) line.fail(fmt::format("value {} is not defined above;", value_word(name)));
  return found->second;
}

std::vector<ValueId> Parser::refs(Scanner& line) {
  std::vector<ValueId> ids;
  line.expect("(");
  if (line.accept(")")) return ids;
  do ids.push_back(ref(line));
  while (line.accept(","));
  line.expect(")");
  return ids;
}

}  // namespace zeroplan
