// Values and nodes.
#include <limits>

#include <fmt/format.h>

#include "graph/text/parser.h"

namespace zeroplan {

void Parser::define_marks(Scanner& line, Value& value) {
  if (!line.accept("{")) return;
  do {
    const std::string mark = line.word();
    line.expect("=");
    if (mark == "parameter")
      value.parameter = line.index();
    else if (mark == "unit")
      value.unit = line.index();
    else if (mark == "copy_of")
      value.copy_of = ref(line);
    else
      line.fail(fmt::format("'{}' is not 'parameter', 'unit' or 'copy_of';", mark));
  } while (line.accept(","));
  line.expect("}");
}

ValueId Parser::define(Scanner& line, ValueKind kind) {
  Value value;
  value.name = line.value_name();
  if (value.name.empty()) line.fail("a value needs a name;");
  line.expect(":");
  value.dtype = line.dtype();
  value.shape = shape(line);
  value.kind = kind;
  define_marks(line, value);
  const std::string name = value.name;
  if (ids_.count(name)) line.fail(fmt::format("value {} is defined twice;", value_word(name)));
  return ids_[name] = graph_.add_value(std::move(value));
}

void Parser::parse_leaf(Scanner& line, ValueKind kind) {
  const ValueId id = define(line, kind);
  if (kind != ValueKind::constant) return;
  line.expect("=");
  graph_.values[id].constant = constant(line, graph_.values[id].dtype, graph_.values[id].shape);
}

HostTensor Parser::constant(Scanner& line, DType dtype, const Shape& shape) {
  // Before any memory is asked for: an element takes a character at least.
  if (elements(shape) > line.remaining()) line.fail(fmt::format("{} elements are needed", elements(shape)));
  HostTensor tensor(dtype, shape);
  if (line.accept("hex")) {
    line.bytes(tensor.mutable_data(), tensor.bytes());
    return tensor;
  }
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (is_half(dtype)) {
      tensor.set(i, line.number());
      continue;
    }
    visit_dtype(dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, float>)
        tensor.mutable_as<T>()[i] = line.float_number();
      else if constexpr (std::is_same_v<T, double>)
        tensor.mutable_as<T>()[i] = line.number();
      else if constexpr (std::is_same_v<T, uint64_t>)
        tensor.mutable_as<T>()[i] = line.natural();
      else
        tensor.set_int(i, line.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    });
  }
  return tensor;
}

void Parser::parse_program(Scanner& line) { program_ = program(line); }

Attributes::Value Parser::attribute(Scanner& line) {
  if (line.peek('"')) return line.quoted();
  if (line.peek('[')) return line.integers();
  Scanner ahead = line;
  if (ahead.number_text().find_first_not_of("-0123456789") == std::string_view::npos) return line.integer();
  return line.number();
}

Attributes Parser::attributes(Scanner& line) {
  Attributes attributes;
  if (!line.accept("{")) return attributes;
  do {
    const Attr key = located(line, [&] { return parse_attr(line.word()); });
    line.expect("=");
    attributes.set(key, attribute(line));
  } while (line.accept(","));
  line.expect("}");
  return attributes;
}

// A name with a type is defined here, one without stands above (state).
ValueId Parser::node_output(Scanner& line) {
  Scanner ahead = line;
  ahead.value_name();
  return ahead.peek(':') ? define(line, ValueKind::computed) : ref(line);
}

void Parser::skip_outputs(Scanner& line) {
  do {
    Value ignored;
    line.value_name();
    if (!line.accept(":")) continue;
    line.word();
    line.integers();
    define_marks(line, ignored);
  } while (line.accept(","));
  line.expect("=");
}

void Parser::parse_node(Scanner& line) {
  // Operands are looked up before the outputs are defined: a node cannot read itself.
  Scanner outputs = line;
  const bool has_outputs = line.peek('%');
  if (has_outputs) skip_outputs(line);
  Node node;
  node.program = program_;
  node.op = op(line);
  node.inputs = refs(line);
  node.attributes = attributes(line);
  if (line.accept("unit")) {
    line.expect("=");
    node.unit = line.index();
  }
  node.backward = line.accept("backward");
  if (line.peek('o')) node.origin = text_field(line, "origin");
  if (line.peek('r')) node.reason = text_field(line, "reason");
  if (has_outputs) {
    do node.outputs.push_back(node_output(outputs));
    while (outputs.accept(","));
  }
  graph_.nodes.push_back(std::move(node));
}

void Parser::parse_source(Scanner& line) {
  SourceNode node;
  node.program = program(line);
  node.outputs = refs(line);
  line.expect("=");
  node.op = op(line);
  node.inputs = refs(line);
  node.attributes = attributes(line);
  graph_.source.push_back(std::move(node));
}

}  // namespace zeroplan
