#pragma once
// What each initializer of a model is, and the parameters that follow from it: docs/architecture.md, roles.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/patterns.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// One tensor of the model that could be a parameter: floating-point numbers, or integers with a scale.
struct Candidate {
  const OnnxTensor* tensor = nullptr;
  Role role = Role::constant;
  std::string root, reason;
  int parameter = -1;       // index in RolePlan::parameters
  bool transposed = false;  // shows the transpose of its parameter
  bool number = false;      // looks like a number of a formula; --train trains it
  std::optional<Quantization> quantization;
};

struct Use {
  const OnnxNode* node = nullptr;
  int input = 0;
};

// Readers of each value.
using UseMap = std::map<std::string, std::vector<Use>>;

struct RolePlan {
  std::vector<Parameter> parameters;
  std::vector<Candidate> candidates;
  std::map<std::string, int> by_name;                     // initializer or Constant output -> candidate
  std::map<std::pair<std::string, int>, int> split_uses;  // (first output of the reading node, input) -> parameter of its own
  std::vector<std::pair<std::string, std::string>>
      folded;                                       // initializer that folding made of another one that is there too, with other values
  std::map<const OnnxNode*, bool> batch_norms;      // each BatchNormalization -> does it use the statistics of its batch?
  std::map<std::string, const OnnxTensor*> scales;  // scales and zero points of quantised parameters, by the name of their value
  std::vector<RoleRow> rows;
  std::vector<std::string> report, problems;
};

// `wanted`: values that the loss is made of.
RolePlan plan_roles(const OnnxModel& model, WeightFiles& files, const ImportOptions& options, const std::set<std::string>& wanted);

// The steps of plan_roles.
// `wanted`: values that the loss is made of; `trains`: integers with a scale may be weights too.
void find_candidates(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const std::set<std::string>& wanted, bool trains,
                     RolePlan& plan);
void make_parameter(Candidate& c, const ImportOptions& options, RolePlan& plan);  // of a candidate with that role, or a problem
// The name that the weight of a folded transpose had: node /net/h.0/attn/MatMul gives net.h.0.attn.weight. `names`: of all candidates.
void recover_name(const OnnxModel& model, const UseMap& uses, const std::map<std::string, int>& names, Candidate& c);
UseMap find_uses(const OnnxGraph& graph, bool inside_nodes = true);
// Values from which a gradient path leads to a wanted one.
struct GradientValues {
  std::set<std::string> weights;
  std::map<std::string, std::string> settings;  // that are read as such (GradientPath), with what they are; may be among `weights` too
};
GradientValues gradient_values(const OnnxGraph& graph, const std::set<std::string>& wanted);
struct TieOptions {
  Patterns tie, untie;
};
void tie_copies(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan);
bool is_constant_valued(WeightFiles& files, const OnnxTensor& tensor);          // all elements equal, bit by bit
Role source_role(const ExporterMetadata& metadata, const std::string& source);  // of a tensor of the original model
void refuse_folded(RolePlan& plan);
void report_folded(const ExporterMetadata& metadata, RolePlan& plan);
void report_guessed(const OnnxModel& model, RolePlan& plan);            // where the file does not tell buffers from parameters
void report_stored(DType precision, RolePlan& plan);                    // parameters in another form than they are trained in
void report_dropped(const ExporterMetadata& metadata, RolePlan& plan);  // parameters that the exporter left out of the file
void report_dropout(const OnnxModel& model, RolePlan& plan);            // a PyTorch file without any
void fill_rows(const OnnxModel& model, RolePlan& plan);
void split_merged(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan);

}  // namespace zeroplan
