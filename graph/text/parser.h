#pragma once
// Reads the text form line by line into a graph; used by parse_graph alone. A rule reads one line, after its first word.
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "graph/ir/graph.h"
#include "graph/text/tokens.h"

namespace zeroplan {

class Parser {
 public:
  Graph run(std::string_view text);

 private:
  using Rule = void (Parser::*)(Scanner&);
  static Rule find_rule(const std::string& word);
  void parse_line(Scanner& line);

  // Pieces of a line. Names and words are looked up; what is unknown is an Error with the line.
  int64_t integer_field(Scanner& line, std::string_view name);  // name=1
  std::string text_field(Scanner& line, std::string_view name);
  ValueId ref_field(Scanner& line, std::string_view name);
  bool trainable(Scanner& line);
  Placement placement(Scanner& line, std::string_view name);
  Program program(Scanner& line);
  OpKind op(Scanner& line);
  Shape shape(Scanner& line);
  ValueId ref(Scanner& line);                     // %a or -
  std::vector<ValueId> refs(Scanner& line);       // (%a, -)
  ValueId define(Scanner& line, ValueKind kind);  // %a:f32[2]{parameter=0}
  void define_marks(Scanner& line, Value& value);
  HostTensor constant(Scanner& line, DType dtype, const Shape& shape);
  Attributes attributes(Scanner& line);
  Attributes::Value attribute(Scanner& line);
  ValueId node_output(Scanner& line);
  void skip_outputs(Scanner& line);
  Loss loss(Scanner& line);
  Parameter& last_parameter(Scanner& line);
  StoredRun stored_run(Scanner& line);

  // parse_model.cc
  void parse_parameter(Scanner& line);
  void parse_quantized(Scanner& line);
  void parse_alias(Scanner& line);
  void parse_split_use(Scanner& line);
  void parse_role_reason(Scanner& line);
  void parse_unit(Scanner& line);
  void parse_member(Scanner& line);
  void parse_inputs(Scanner& line);
  void parse_output(Scanner& line);
  void parse_loss(Scanner& line);
  void parse_eval_loss(Scanner& line);
  void parse_gradient(Scanner& line);
  void parse_state_update(Scanner& line);
  void parse_statistics(Scanner& line);
  // parse_nodes.cc
  template <ValueKind kind>
  void parse_leaf(Scanner& line) {
    parse_leaf(line, kind);
  }
  void parse_leaf(Scanner& line, ValueKind kind);
  void parse_program(Scanner& line);
  void parse_node(Scanner& line);
  void parse_source(Scanner& line);

  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  Program program_ = Program::micro_step;
};

// Runs `parse`, and adds the line to an Error that does not know it.
template <typename Fn>
auto located(Scanner& line, Fn&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    line.fail(error.message() + ";");
  }
}

}  // namespace zeroplan
