// Two initializers that show one parameter: tied again where metadata names one source, or where an embedding table and its equal
// transpose stand under Gather and MatMul. Other equal copies are reported.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "graph/onnx/roles.h"
#include "graph/onnx/stored_weight.h"

namespace zeroplan {
namespace {

enum class Relation { none, equal, transposed };

// The shape without its order, first and last element, and what scales them: equal for copies and transposes of one scale.
using Fingerprint = std::tuple<Shape, StoredType, std::vector<std::byte>, std::string>;

Fingerprint fingerprint(WeightFiles& files, const Candidate& c) {
  const OnnxTensor& tensor = *c.tensor;
  Shape shape = tensor.shape;
  if (shape.size() == 2) std::sort(shape.begin(), shape.end());
  const int64_t size = stored_bytes(tensor.source.type);
  std::vector<std::byte> ends(2 * size);
  read_stored(files, tensor.source, 0, 1, ends.data());
  read_stored(files, tensor.source, elements(tensor.shape) - 1, 1, ends.data() + size);
  const std::string scale = c.quantization ? c.quantization->scale.initializer + '\n' + c.quantization->zero_point.initializer : "";
  return {shape, tensor.source.type, ends, scale};
}

class Blocks {
 public:
  Blocks(WeightFiles& files, const OnnxTensor& tensor) : files_(files), source_(tensor.source), size_(stored_bytes(tensor.source.type)) {}
  const std::byte* read(int64_t first, int64_t count, std::vector<std::byte>& buffer) {
    buffer.resize(count * size_);
    read_stored(files_, source_, first, count, buffer.data());
    return buffer.data();
  }

 private:
  WeightFiles& files_;
  const WeightSource& source_;
  int64_t size_;
};

bool equal_bytes(WeightFiles& files, const OnnxTensor& a, const OnnxTensor& b) {
  constexpr int64_t kBlock = 1 << 16;
  Blocks left(files, a), right(files, b);
  std::vector<std::byte> x, y;
  const int64_t n = elements(a.shape), size = stored_bytes(a.source.type);
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    if (std::memcmp(left.read(at, count, x), right.read(at, count, y), count * size) != 0) return false;
  }
  return true;
}

// b[j,i] = a[i,j], a block of a's rows at a time.
bool equal_transposed(WeightFiles& files, const OnnxTensor& a, const OnnxTensor& b) {
  constexpr int64_t kRows = 256;
  const int64_t rows = a.shape[0], columns = a.shape[1], size = stored_bytes(a.source.type);
  Blocks left(files, a), right(files, b);
  std::vector<std::byte> x, y;
  for (int64_t at = 0; at < rows; at += kRows) {
    const int64_t count = std::min(kRows, rows - at);
    const std::byte* block = left.read(at * columns, count * columns, x);
    for (int64_t j = 0; j < columns; ++j) {
      const std::byte* line = right.read(j * rows + at, count, y);
      for (int64_t i = 0; i < count; ++i)
        if (std::memcmp(block + (i * columns + j) * size, line + i * size, size) != 0) return false;
    }
  }
  return true;
}

Relation relation(WeightFiles& files, const OnnxTensor& a, const OnnxTensor& b, bool prefer_transposed) {
  const bool reversed = a.shape.size() == 2 && b.shape.size() == 2 && a.shape[0] == b.shape[1] && a.shape[1] == b.shape[0];
  if (prefer_transposed && reversed && equal_transposed(files, a, b)) return Relation::transposed;
  if (a.shape == b.shape && equal_bytes(files, a, b)) return Relation::equal;
  if (!prefer_transposed && reversed && equal_transposed(files, a, b)) return Relation::transposed;
  return Relation::none;
}

}  // namespace

bool is_constant_valued(WeightFiles& files, const OnnxTensor& tensor) {
  constexpr int64_t kBlock = 1 << 14;
  Blocks blocks(files, tensor);
  std::vector<std::byte> first, block;
  const int64_t size = stored_bytes(tensor.source.type), n = elements(tensor.shape);
  blocks.read(0, 1, first);
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    const std::byte* bytes = blocks.read(at, count, block);
    for (int64_t i = 0; i < count; ++i)
      if (std::memcmp(bytes + i * size, first.data(), size) != 0) return false;
  }
  return true;
}

namespace {

bool used_as(const UseMap& uses, const std::string& name, const char* op, int input) {
  const auto found = uses.find(name);
  if (found == uses.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Use& use) { return use.node->op == op && use.input == input; });
}

class Tying {
 public:
  Tying(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan)
      : model_(model), files_(files), uses_(uses), plan_(plan), tie_(options.tie), untie_(options.untie) {}

  void run() {
    std::map<Fingerprint, std::vector<int>> groups;
    for (size_t i = 0; i < plan_.candidates.size(); ++i)
      if (plan_.candidates[i].parameter >= 0) groups[fingerprint(files_, plan_.candidates[i])].push_back(static_cast<int>(i));
    for (auto& [key, members] : groups) run_group(members);
    separate_roots();
    compress();
  }

 private:
  // Roots first: what the exporter left untouched, then tables under Gather, then file order.
  void run_group(std::vector<int>& members) {
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return rank(a) < rank(b); });
    std::vector<int> roots;
    for (int member : members) {
      bool tied = false;
      for (size_t i = 0; i < roots.size() && !tied; ++i) tied = consider(plan_.candidates[roots[i]], plan_.candidates[member]);
      if (!tied) roots.push_back(member);
    }
  }

  int rank(int i) const {
    const std::string& name = plan_.candidates[i].tensor->name;
    return (model_.metadata.kind.count(name) ? 0 : 2) + (used_as(uses_, name, "Gather", 0) ? 0 : 1);
  }

  // By the name of the tensor, or of the parameter that it shows.
  std::optional<Patterns::Match> named(const Candidate& c) {
    const std::optional<Patterns::Match> tensor = tie_.find(c.tensor->name);
    return tensor ? tensor : tie_.find(c.root);
  }

  bool consider(const Candidate& root, Candidate& copy) {
    const std::string &a = root.tensor->name, &b = copy.tensor->name;
    const bool same_source = root.root == copy.root;
    const bool embedding = used_as(uses_, a, "Gather", 0) && (used_as(uses_, b, "MatMul", 1) || used_as(uses_, b, "Gemm", 1));
    const std::optional<Patterns::Match> first = named(root), second = first ? named(copy) : std::nullopt;
    const bool asked = second && first->pattern == second->pattern;
    const Relation related = relation(files_, *root.tensor, *copy.tensor, embedding);
    if (related == Relation::none) return false;
    const bool flat = is_constant_valued(files_, *root.tensor);
    const bool tied = same_source || asked || (embedding && related == Relation::transposed && !flat);
    if (!tied) {
      if (!flat)
        plan_.report.push_back(fmt::format("'{}' and '{}' hold equal values and stay two parameters; --tie '{}|{}' ties them", a, b, a, b));
      return false;
    }
    if (untie_.matches(a) | untie_.matches(b) | untie_.matches(root.root) | untie_.matches(copy.root)) {
      plan_.report.push_back(fmt::format("'{}' and '{}' show one weight and are kept apart by --untie", a, b));
      return false;
    }
    tie(root, copy, related == Relation::transposed,
        same_source ? "the exporter names one source"
        : asked     ? "--tie"
                    : "an embedding table and its transpose");
    return true;
  }

  void tie(const Candidate& root, Candidate& copy, bool transposed, const char* why) {
    plan_.report.push_back(fmt::format("tied: '{}' is {} of '{}' ({}): one parameter", copy.tensor->name,
                                       transposed ? "the transpose" : "a copy", root.tensor->name, why));
    plan_.parameters[root.parameter].aliases.push_back({copy.tensor->name, transposed});
    dead_.insert(copy.parameter);
    copy.parameter = root.parameter;
    copy.transposed = transposed;
    copy.root = root.root;
  }

  // One name for two contents: folding changed one of them, so each keeps the name of its tensor.
  void separate_roots() {
    std::map<std::string, int> owner;
    for (const Candidate& c : plan_.candidates)
      if (c.parameter >= 0 && c.tensor->name == c.root) owner.emplace(c.root, c.parameter);
    for (Candidate& c : plan_.candidates) {
      if (c.parameter < 0) continue;
      const auto [found, added] = owner.emplace(c.root, c.parameter);
      if (added || found->second == c.parameter) continue;
      plan_.report.push_back(
          fmt::format("'{}' also came from '{}' but holds other values: a parameter of its own", c.tensor->name, c.root));
      const bool overlaps = plan_.by_name.count(c.root) > 0 && !(untie_.matches(c.tensor->name) | untie_.matches(c.root));
      if (overlaps) plan_.folded.emplace_back(c.tensor->name, c.root);
      c.root = c.tensor->name;
      plan_.parameters[c.parameter].name = c.root;
    }
  }

  void compress() {
    std::vector<int> renumbered(plan_.parameters.size(), -1);
    std::vector<Parameter> kept;
    for (size_t i = 0; i < plan_.parameters.size(); ++i) {
      if (dead_.count(static_cast<int>(i))) continue;
      renumbered[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(plan_.parameters[i]));
    }
    plan_.parameters = std::move(kept);
    for (Candidate& c : plan_.candidates)
      if (c.parameter >= 0) c.parameter = renumbered[c.parameter];
  }

  const OnnxModel& model_;
  WeightFiles& files_;
  const UseMap& uses_;
  RolePlan& plan_;
  Patterns &tie_, &untie_;
  std::set<int> dead_;
};

}  // namespace

void tie_copies(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan) {
  if (files.absent()) return;  // no bytes to compare
  Tying(model, files, options, uses, plan).run();
}

}  // namespace zeroplan
