// Names of weights that an exporter took away.
#include <algorithm>
#include <string_view>

#include "graph/onnx/roles.h"

namespace zeroplan {
namespace {

// Scopes as the name of a module. A Sequential is a scope of its own, so that its child is /net/ffm/ffm.1, but net.ffm.1: told by the bias.
std::string module_name(std::string_view scopes, const std::map<std::string, int>& names) {
  std::string whole, brief, last;
  for (size_t at = 0; at <= scopes.size();) {
    const size_t end = std::min(scopes.find('/', at), scopes.size());
    const std::string scope(scopes.substr(at, end - at));
    if (!last.empty() && scope.starts_with(last + ".")) brief.resize(brief.size() - last.size() - 1);
    whole += scope + ".";
    brief += scope + ".";
    last = scope;
    at = end + 1;
  }
  return names.count(brief + "bias") ? brief : whole;
}

}  // namespace

void recover_name(const OnnxModel& model, const UseMap& uses, const std::map<std::string, int>& names, Candidate& c) {
  if (c.root != c.tensor->name || c.root.rfind("onnx::MatMul", 0) != 0 || model.producer.rfind("pytorch", 0) != 0) return;
  const auto readers = uses.find(c.tensor->name);
  if (readers == uses.end() || readers->second.size() != 1 || readers->second[0].node->op != "MatMul") return;
  const std::string& node = readers->second[0].node->name;
  const size_t slash = node.rfind('/');
  if (slash == std::string::npos || slash == 0 || node[0] != '/') return;
  const std::string name = module_name(std::string_view(node).substr(1, slash - 1), names) + "weight";
  if (!names.count(name)) c.root = name;
}

}  // namespace zeroplan
