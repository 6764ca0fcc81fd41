#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "graph/text/text.h"
#include "graph/text/tokens.h"

namespace zeroplan {
namespace {

constexpr int64_t kPrintedElements = 16;

std::string_view placement_name(Placement placement) { return placement == Placement::sharded ? "sharded" : "replicated"; }

std::string type_word(DType dtype, const Shape& shape) { return fmt::format("{}{}", dtype_name(dtype), to_string(shape)); }

void append_word(std::string& text, const Attributes::Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value))
    text += fmt::format_int(*integer).c_str();
  else if (const auto* number = std::get_if<double>(&value))
    text += number_word(*number);
  else if (const auto* string = std::get_if<std::string>(&value))
    text += quote(*string);
  else
    text += to_string(std::get<std::vector<int64_t>>(value));
}

// " {axis=1}" or nothing.
void append_attributes(std::string& text, const Attributes& attributes) {
  if (attributes.entries().empty()) return;
  bool first = true;
  for (const auto& [key, value] : attributes.entries()) {
    text += first ? " {" : ", ";
    first = false;
    text += attr_name(key);
    text += '=';
    append_word(text, value);
  }
  text += '}';
}

// Not-a-numbers differ in bits that digits do not show.
bool has_nan(const HostTensor& tensor) {
  for (int64_t i = 0; i < tensor.count(); ++i)
    if (std::isnan(tensor.get(i))) return true;
  return false;
}

// For the hash alone: the digits of a large constant would be most of the text.
std::string constant_digest(const HostTensor& tensor) { return fmt::format(" #{:016x}", XXH3_64bits(tensor.data(), tensor.bytes())); }

std::string constant_text(const HostTensor& tensor) {
  if (tensor.count() > kPrintedElements || has_nan(tensor)) return " hex " + hex_bytes(tensor.data(), tensor.bytes());
  std::string text;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (is_half(tensor.dtype())) {
      text += fmt::format(" {}", tensor.get(i));
      continue;
    }
    text += visit_dtype(tensor.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, uint64_t>)
        return fmt::format(" {}", tensor.as<T>()[i]);
      else
        return fmt::format(" {}", tensor.get_int(i));
    });
  }
  return text;
}

class Printer {
 public:
  explicit Printer(const Graph& graph, bool digests = false)
      : graph_(graph),
        digests_(digests),
        produced_(graph.values.size(), false),
        referred_(graph.values.size(), false),
        words_(graph.values.size()) {}

  std::string run() {
    for (const Node& node : graph_.nodes)
      for (ValueId output : node.outputs) produced_.at(output) = true;
    collect_references();
    for (const Parameter& parameter : graph_.parameters) print_parameter(parameter);
    for (size_t id = 0; id < graph_.values.size(); ++id) print_leaf(static_cast<ValueId>(id));
    for (const Unit& unit : graph_.units) print_unit(unit);
    print_nodes();
    print_results();
    for (const SourceNode& node : graph_.source) print_source(node);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  // Made once for each value, however often it is read.
  const std::string& ref(ValueId id) const {
    static const std::string kAbsent = "-";
    if (id == kNone) return kAbsent;
    std::string& word = words_.at(id);
    if (word.empty()) word = value_word(graph_.values[id].name);
    return word;
  }

  std::string refs(const std::vector<ValueId>& ids) const {
    std::string text;
    for (ValueId id : ids) {
      if (!text.empty()) text += ", ";
      text += ref(id);
    }
    return text;
  }

  void refer(ValueId id) {
    if (id != kNone) referred_.at(id) = true;
  }

  void refer_all(const std::vector<ValueId>& ids) {
    for (ValueId id : ids) refer(id);
  }

  void collect_references() {
    for (const Node& node : graph_.nodes) refer_all(node.inputs);
    for (const Value& value : graph_.values) refer(value.copy_of);
    for (const SourceNode& node : graph_.source) {
      refer_all(node.inputs);
      refer_all(node.outputs);
    }
    for (const Unit& unit : graph_.units) {
      refer_all(unit.moments);
      refer_all({unit.weights_state, unit.gradient_shard, unit.gradient_full});
    }
    for (const auto& [name, id] : graph_.outputs) refer(id);
    for (const auto& [parameter, id] : graph_.gradients) refer(id);
    for (const StateUpdate& update : graph_.state_updates) refer_all({update.from, update.to});
    for (const BatchStatistics& s : graph_.statistics) refer_all({s.mean, s.variance, s.running_mean, s.running_variance, s.recorded});
    refer_all({graph_.loss.sum, graph_.loss.weight, graph_.loss.scale, graph_.eval_loss.sum, graph_.eval_loss.weight});
    refer_all(graph_.inputs);
  }

  static std::string run_text(const StoredRun& run) {
    return fmt::format("initializer={} file={} offset={} bytes={} stored={}{}", quote(run.initializer), quote(run.file), run.offset,
                       run.bytes, stored_name(run.type), run.varints ? " varints" : "");
  }

  void print_parameter(const Parameter& parameter) {
    print("parameter {} {} {} {}\n", quote(parameter.name), type_word(parameter.dtype, parameter.shape),
          parameter.statistics  ? "statistics"
          : parameter.trainable ? "trainable"
                                : "frozen",
          run_text(parameter.source));
    if (const std::optional<Quantization>& q = parameter.source.quantization)
      print("  quantized count={} extent={} inner={} block={} scale {} zero_point {}\n", q->count, q->extent, q->inner, q->block,
            run_text(q->scale), run_text(q->zero_point));
    for (const ParameterAlias& alias : parameter.aliases)
      print("  alias {}{}\n", quote(alias.initializer), alias.transposed ? " transposed" : "");
    for (const auto& [node, input] : parameter.split_uses) print("  split_use {} {}\n", quote(node), input);
    if (!parameter.role_reason.empty()) print("  role_reason {}\n", quote(parameter.role_reason));
  }

  // "%x:f32[2]{parameter=0}"
  std::string definition(ValueId id) const {
    const Value& value = graph_.values[id];
    std::string text = ref(id);
    text += ':';
    text += dtype_name(value.dtype);
    text += to_string(value.shape);
    std::string marks;
    if (value.parameter != kNone) marks += fmt::format("parameter={}", value.parameter);
    if (value.unit != kNone) marks += fmt::format("{}unit={}", marks.empty() ? "" : ", ", value.unit);
    if (value.copy_of != kNone) marks += fmt::format("{}copy_of={}", marks.empty() ? "" : ", ", ref(value.copy_of));
    return marks.empty() ? text : text + "{" + marks + "}";
  }

  void print_leaf(ValueId id) {
    constexpr std::string_view kWords[] = {"dead", "input", "constant", "weight", "state"};
    const Value& value = graph_.values[id];
    const bool droppable = value.kind == ValueKind::computed || value.kind == ValueKind::constant;
    if (value.kind == ValueKind::computed && produced_[id]) return;
    if (droppable && !referred_[id] && !produced_[id]) return;
    print("{} {}", kWords[static_cast<size_t>(value.kind)], definition(id));
    if (value.kind == ValueKind::constant)
      print(" ={}",
            digests_ && value.constant.count() > kPrintedElements ? constant_digest(value.constant) : constant_text(value.constant));
    print("\n");
  }

  void print_unit(const Unit& unit) {
    print("unit {} {} gradient_dtype={} reduce_dtype={} padded_elements={} shard_elements={} {}{}", quote(unit.name),
          dtype_name(unit.dtype), dtype_name(unit.gradient_dtype), dtype_name(unit.reduce_dtype), unit.padded_elements, unit.shard_elements,
          unit.trainable ? "trainable" : "frozen", unit.carried ? " carried" : "");
    print(" weights={} gradients={} optimizer={}", placement_name(unit.weights), placement_name(unit.gradients),
          placement_name(unit.optimizer));
    print(" weights_state={} gradient_shard={} gradient_full={} moments=({})\n", ref(unit.weights_state), ref(unit.gradient_shard),
          ref(unit.gradient_full), refs(unit.moments));
    for (const UnitParameter& member : unit.parameters)
      print("  member parameter={} offset={} elements={}\n", member.parameter, member.offset, member.elements);
  }

  void print_nodes() {
    const Program* current = nullptr;
    for (const Node& node : graph_.nodes) {
      if (!current || *current != node.program) print("program {}\n", program_name(node.program));
      current = &node.program;
      print_node(node);
    }
  }

  void print_node(const Node& node) {
    std::string outputs;
    for (ValueId id : node.outputs) {
      const Value& value = graph_.values[id];
      if (!outputs.empty()) outputs += ", ";
      outputs += value.kind == ValueKind::computed ? definition(id) : ref(id);
    }
    out_ += "  ";
    out_ += outputs;
    if (!outputs.empty()) out_ += " = ";
    out_ += op_name(node.op);
    out_ += '(';
    out_ += refs(node.inputs);
    out_ += ')';
    append_attributes(out_, node.attributes);
    if (node.unit != kNone) print(" unit={}", node.unit);
    if (node.backward) print(" backward");
    if (!node.origin.empty()) out_ += " origin=" + quote(node.origin);
    if (!node.reason.empty()) out_ += " reason=" + quote(node.reason);
    out_ += '\n';
  }

  void print_loss(std::string_view word, const Loss& loss) {
    if (loss.sum == kNone && loss.weight == kNone && loss.description.empty()) return;
    const std::string scale = loss.scale == kNone ? "" : " scale=" + ref(loss.scale);
    print("{} sum={} weight={}{} description={}\n", word, ref(loss.sum), ref(loss.weight), scale, quote(loss.description));
  }

  void print_results() {
    if (!graph_.inputs.empty()) print("inputs ({})\n", refs(graph_.inputs));
    for (const auto& [name, id] : graph_.outputs) print("output {} = {}\n", quote(name), ref(id));
    print_loss("loss", graph_.loss);
    print_loss("eval_loss", graph_.eval_loss);
    for (const auto& [parameter, id] : graph_.gradients) print("gradient {} = {}\n", parameter, ref(id));
    for (const StateUpdate& update : graph_.state_updates)
      print("state_update {} {} = {}\n", program_name(update.program), ref(update.from), ref(update.to));
    for (const BatchStatistics& s : graph_.statistics)
      print("statistics mean={} variance={} running_mean={} running_variance={} momentum={} recorded={}\n", ref(s.mean), ref(s.variance),
            ref(s.running_mean), ref(s.running_variance), number_word(s.momentum), ref(s.recorded));
  }

  void print_source(const SourceNode& node) {
    print("source {} ({}) = {}({})", program_name(node.program), refs(node.outputs), op_name(node.op), refs(node.inputs));
    append_attributes(out_, node.attributes);
    out_ += '\n';
  }

  const Graph& graph_;
  const bool digests_;
  std::vector<bool> produced_, referred_;
  mutable std::vector<std::string> words_;
  std::string out_;
};

}  // namespace

std::string print_graph(const Graph& graph) { return Printer(graph).run(); }

uint64_t graph_hash(const Graph& graph) {
  const std::string text = Printer(graph, true).run();
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace zeroplan
