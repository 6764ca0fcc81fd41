#include "graph/onnx/loss_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/npy.h"

namespace zeroplan {
namespace {

using Kind = LossSpec::Kind;

struct BuiltInRow {
  const char* name;
  Kind kind;
  const char* labels;                    // name of the input that it adds where none is stated
  std::array<const char*, 5> keys = {};  // the last is null
};

constexpr BuiltInRow kBuiltIns[] = {
    {"softmax_cross_entropy", Kind::softmax_cross_entropy, "labels", {"axis", "ignore_index", "label_smoothing", "class_weights"}},
    {"nll", Kind::nll, "labels", {"axis", "ignore_index", "class_weights"}},
    {"bce_with_logits", Kind::bce_with_logits, "target", {"pos_weight"}},
    {"mse", Kind::mse, "target"},
    {"l1", Kind::l1, "target"},
    {"smooth_l1", Kind::smooth_l1, "target", {"beta"}},
    {"huber", Kind::huber, "target", {"delta"}},
    {"cosine", Kind::cosine, "target"},
};

std::vector<std::string> keys_of(const BuiltInRow& row) {
  std::vector<std::string> keys;
  for (const char* const* key = row.keys.data(); *key != nullptr; ++key) keys.emplace_back(*key);
  keys.emplace_back("reduction");
  return keys;
}

std::vector<std::string> built_in_names() {
  std::vector<std::string> names;
  for (const BuiltInRow& row : kBuiltIns) names.emplace_back(row.name);
  return names;
}

[[noreturn]] void refuse(const std::string& why) { throw Error("--loss: " + why); }

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

bool is_quote(char c) { return c == '\'' || c == '"'; }

std::string unquoted(const std::string& given) {
  const std::string text = trimmed(given);
  const bool first = !text.empty() && is_quote(text.front()), last = !text.empty() && is_quote(text.back());
  if (!first && !last) return text;
  if (text.size() < 2 || text.front() != text.back()) refuse(fmt::format("a quote is missing in {}; names need none", text));
  return trimmed(text.substr(1, text.size() - 2));
}

const BuiltInRow* find_built_in(const std::string& name) {
  for (const BuiltInRow& row : kBuiltIns)
    if (name == row.name) return &row;
  return nullptr;
}

std::string form_of(const BuiltInRow& row) { return fmt::format("'{}({}, {})'", row.name, "OUTPUT", row.labels); }

// At the commas that stand in no bracket and no quotes.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> list(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote ? c == quote : is_quote(c)) quote = quote ? 0 : c;
    if (!quote) depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (depth < 0) refuse(fmt::format("a bracket closes that was never opened in ({})", text));
    if (c == ',' && depth == 0 && !quote)
      list.emplace_back();
    else
      list.back() += c;
  }
  if (depth > 0 || quote) refuse(fmt::format("a {} is not closed in ({})", quote ? "quote" : "bracket", text));
  for (std::string& part : list) part = trimmed(part);
  return list;
}

bool as_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

double number(const std::string& key, const std::string& text, double low) {
  double value = 0;
  if (!as_number(text, value)) refuse(fmt::format("{}={} is not a number", key, text));
  if (value < low) refuse(fmt::format("{}={} must be {} or more", key, text, low));
  return value;
}

int64_t whole(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(fmt::format("{}={} is not a whole number", key, text));
  return value;
}

std::vector<double> weights_in_file(const std::string& key, const std::string& path) {
  const NpyFile file(path);
  if ((file.type != NpyType::f4 && file.type != NpyType::f8) || file.shape.size() != 1)
    refuse(fmt::format("{}: {} holds {} of shape {}; it must hold floating-point numbers, one for each class", key, path,
                       npy_type_name(file.type), to_string(file.shape)));
  const HostTensor weights = file.tensor();
  std::vector<double> values;
  for (int64_t i = 0; i < weights.count(); ++i) values.push_back(weights.get(i));
  return values;
}

// 0.5, [0.5, 1, 2], or FILE.npy.
std::vector<double> weights(const std::string& key, const std::string& text) {
  if (text.ends_with(".npy")) return weights_in_file(key, text);
  const bool bracketed = text.size() > 1 && text.front() == '[' && text.back() == ']';
  std::vector<double> values;
  for (const std::string& part : split(bracketed ? text.substr(1, text.size() - 2) : text)) values.push_back(number(key, part, 0));
  return values;
}

class Arguments {
 public:
  Arguments(const BuiltInRow& row, LossSpec& spec) : row_(row), spec_(spec) {}

  void take(const std::vector<std::string>& list) {
    for (const std::string& argument : list) {
      double ignored = 0;
      const size_t equals = argument.find('=');
      const bool named = equals != std::string::npos && !is_quote(argument[0]);
      if (argument.empty()) refuse(fmt::format("{} has an empty argument; write it as {}", row_.name, form_of(row_)));
      if (named)
        take_named(trimmed(argument.substr(0, equals)), unquoted(argument.substr(equals + 1)));
      else if (list_ && as_number(argument, ignored))  // class_weights=1,2,3
        list_->push_back(number("class_weights", argument, 0));
      else
        take_place(unquoted(argument));
    }
    if (spec_.output.empty()) refuse(fmt::format("{} names no output of the model; write it as {}", row_.name, form_of(row_)));
    if (spec_.label_smoothing > 1) refuse("label_smoothing must be from 0 to 1");
  }

 private:
  void take_place(const std::string& name) {
    if (places_ > 1 || list_ || named_) refuse(fmt::format("'{}' is one argument too many; {}", name, accepted()));
    (places_++ == 0 ? spec_.output : spec_.labels) = name;
  }

  void take_named(const std::string& key, const std::string& value) {
    named_ = true;
    list_ = nullptr;
    const std::vector<std::string> keys = keys_of(row_);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string close = nearest(key, keys);
      refuse(fmt::format("{} has no argument '{}'{}; {}", row_.name, key, close.empty() ? "" : fmt::format(", did you mean {}?", close),
                         accepted()));
    }
    if (key == "axis") spec_.axis = whole(key, value);
    if (key == "ignore_index") spec_.ignore_index = whole(key, value);
    if (key == "label_smoothing") spec_.label_smoothing = number(key, value, 0);
    if (key == "beta" || key == "delta") spec_.beta = number(key, value, 0);
    if (key == "class_weights") spec_.class_weights = weights(key, value), list_ = &spec_.class_weights;
    if (key == "pos_weight") spec_.pos_weight = weights(key, value), list_ = &spec_.pos_weight;
    if (key == "delta" && spec_.beta == 0) refuse("delta must be above 0");
    if (key != "reduction") return;
    if (value != "mean" && value != "sum") refuse(fmt::format("reduction={} is unknown; use mean or sum", value));
    spec_.sum = value == "sum";
  }

  std::string accepted() const {
    return fmt::format("it takes an output, {} and {}=…", spec_.has_classes() ? "labels" : "a target", fmt::join(keys_of(row_), "=…, "));
  }

  const BuiltInRow& row_;
  LossSpec& spec_;
  int places_ = 0;
  bool named_ = false;
  std::vector<double>* list_ = nullptr;  // that a bare number belongs to
};

// The text has no '(': a built-in that lacks its operands or has other brackets, or one that is spelt wrong?
void refuse_if_built_in(const std::string& text) {
  const std::string word = text.substr(0, text.find_first_of(" \t[{<:,"));
  if (const BuiltInRow* row = find_built_in(word))
    refuse(fmt::format("'{}' is not complete; write it as {}, with round brackets", text, form_of(*row)));
  const std::string close = nearest(word, built_in_names());
  if (!close.empty()) refuse(fmt::format("'{}': did you mean {}?", text, form_of(*find_built_in(close))));
}

}  // namespace

LossSpec read_loss_text(const std::string& given, const std::vector<std::string>& outputs) {
  const auto is_output = [&](const std::string& name) { return std::find(outputs.begin(), outputs.end(), name) != outputs.end(); };
  LossSpec spec;
  spec.output = trimmed(given);
  if (is_output(spec.output)) return spec;
  const std::string text = unquoted(given);
  spec.output = text;
  const size_t open = text.find('(');
  if (is_output(text)) return spec;
  if (open == std::string::npos) {
    refuse_if_built_in(text);
    return spec;
  }
  const std::string name = trimmed(text.substr(0, open));
  const BuiltInRow* row = find_built_in(name);
  if (!row) {
    const std::string close = nearest(name, built_in_names());
    refuse(fmt::format("'{}' is unknown; {}use {}", name, close.empty() ? "" : fmt::format("did you mean {}? ", close),
                       fmt::join(built_in_names(), ", ")));
  }
  if (text.back() != ')')
    refuse(text.find(')', open) == std::string::npos
               ? fmt::format("the closing ')' is missing in '{}'", text)
               : fmt::format("'{}' follows the closing ')'", trimmed(text.substr(text.rfind(')') + 1))));
  spec = {};
  spec.kind = row->kind;
  spec.labels = row->labels;
  Arguments(*row, spec).take(split(text.substr(open + 1, text.size() - open - 2)));
  return spec;
}

}  // namespace zeroplan
