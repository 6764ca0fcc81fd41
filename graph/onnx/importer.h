#pragma once
// An ONNX file to a Graph: forward nodes in internal form, static shapes, parameters with roles and sources, loss attached.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "graph/ir/graph.h"
#include "graph/onnx/stated_optimizer.h"

namespace zeroplan {

class WeightFiles;

struct ImportOptions {
  std::map<std::string, int64_t> dims;  // symbolic dimensions by name
  int64_t samples = 0;                  // per micro-batch; bound to the sample symbol. 0: the baked batch, else an error naming the symbol
  std::map<std::string, int> sample_axes;       // input -> axis, -1: none
  std::string loss;                             // empty: output of the graph; an output's name; or a built-in such as mse(…)
  std::string loss_model;                       // a file that makes the loss of outputs of the model; then `loss` is empty
  std::map<std::string, std::string> loss_map;  // input of that file -> output of the model, where their names differ
  std::string sample_weight;                    // input of a weight for each sample; empty: each counts once
  DType precision = DType::f32;                 // every floating-point value of the graph gets this type
  std::vector<std::string> train, freeze, tie, untie;
  std::vector<std::string> train_bn, eval_bn;
  bool sync_bn = false;                    // for the report alone
  int64_t micro_batches = 1;               // of the optimizer step; above 1, a loss that is no mean or sum over samples is refused
  std::map<std::string, HostTensor> bind;  // inputs that are constants: what depends on them alone is evaluated at import
  std::vector<std::string> outputs;        // not empty: forward only. These outputs are wanted instead of a loss, and nothing is trained
  bool inference = false;                  // Dropout and BatchNormalization in inference mode, but for what train_bn names
  std::map<std::string, HostTensor> dropout_masks;  // first output of a Dropout node -> what it keeps, instead of random numbers
};

struct ImportedInput {
  std::string name;
  ValueId value = kNone;
  int sample_axis = 0;  // -1: given whole
  int64_t limit = -1;   // see PlanInput
  bool label = false;
  int64_t ignored = 0;
  bool has_ignored = false;
  bool mask = false;  // boolean, one per sample: which of them count
};

struct ImportedOutput {
  std::string name;
  ValueId value = kNone;
  int sample_axis = -1;  // -1: made of all samples, or of none
  int type = 0;          // TensorProto.DataType that the model states; 0: none
  bool counted = false;  // made of no sample, but of their number
};

enum class Role : uint8_t { parameter, frozen, buffer, constant };

struct RoleRow {  // one line of `inspect`'s table
  std::string initializer;
  std::string root;  // parameter name
  Role role{};
  std::string type;  // as stored: float32, float16, int64, …
  Shape shape;
  std::string reason;
};

struct ImportedModel {
  Graph graph;  // loss set; parameters with sources, aliases and split uses
  std::vector<ImportedInput> inputs;
  std::vector<ImportedOutput> outputs;  // forward only
  std::vector<RoleRow> roles;
  std::vector<std::string> report;  // ties, splits, exports without dropout, unused initializers: one line each
  std::vector<std::string> loss_candidates;
  std::string model_path;
  std::string model_digest;
  int64_t baked_batch = 0;  // 0: the sample axis is symbolic
  std::string producer;
  int opset = 0;          // as stored
  int decoded_opset = 0;  // that it was read as
};

// What must be known before samples per micro-batch are: the batch that the file bakes in (0: symbolic, or no batch).
struct ModelPeek {
  int64_t baked_batch = 0;
  std::map<std::string, std::vector<std::string>> symbols;     // unbound dims: symbol -> inputs that carry it; without the sample symbol
  std::string sample_symbol;                                   // binds to samples per micro-batch; empty: baked, or none
  std::map<std::string, std::vector<std::string>> input_dims;  // input -> its axes as text: a number, or a symbol
};

// A file that is read, checked and converted once, for all that is asked of it. Throws Error where that cannot be.
class ModelFile {
 public:
  explicit ModelFile(const std::string& path);  // a folder: the training artifacts in it
  ~ModelFile();
  // As ImportOptions has them.
  ModelPeek peek(const std::map<std::string, int>& sample_axes = {}, const std::map<std::string, HostTensor>& bind = {}) const;
  std::vector<std::string> output_names() const;
  // The open files, which know the digest that was read; they may outlive this object.
  std::shared_ptr<WeightFiles> weights() const;
  // That the model, or a file beside it, states; null: none.
  const StatedOptimizer* stated_optimizer() const;
  // Throws ErrorList with every problem of the model (unbound dims, unsupported nodes, ops without gradient on a path from a
  // trainable parameter to the loss), or Error where decoding cannot go on. Reads no weights beyond what tie and role rules need.
  ImportedModel decode(const ImportOptions& options) const;
  // As decode, but what stands in the way goes to `problems` and the model comes back as far as it got: roles, loss candidates, producer.
  ImportedModel inspect(const ImportOptions& options, std::vector<std::string>& problems) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

// For one question alone.
ImportedModel import_model(const std::string& path, const ImportOptions& options);

}  // namespace zeroplan
