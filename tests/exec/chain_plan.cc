#include "tests/exec/chain_plan.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "runtime/plan/report.h"

namespace zeroplan::test {
namespace {

class ChainBuilder {
 public:
  explicit ChainBuilder(const ChainOptions& options) : o_(options) {}

  std::shared_ptr<const Plan> build() {
    add_header();
    for (int u = 0; u < o_.units; ++u) add_unit(u);
    add_state();
    add_transient();
    add_load();
    add_micro_step();
    add_update();
    add_eval();
    add_save();
    p_.arena_bytes[static_cast<int>(Arena::transient)] -= o_.overflow_bytes;
    return std::make_shared<Plan>(p_);
  }

 private:
  bool carried() const { return o_.micro_batches <= o_.ranks; }

  void add_header() {
    p_.header.ranks = o_.ranks;
    p_.header.micro_batches = o_.micro_batches;
    p_.header.batch = o_.micro_batches * o_.samples;
    p_.header.optimizer = "sgd";
  }

  void add_unit(int u) {
    PlanUnit unit{{.name = fmt::format("block.{}", u)}};
    const int64_t second = round_up(o_.width, 64);
    for (int k = 0; k < 2; ++k) {
      const int index = static_cast<int>(p_.parameters.size());
      unit.parameters.push_back({index, k * second, o_.width});
      PlanParameter parameter;
      parameter.parameter.name = fmt::format("block.{}.{}", u, k == 0 ? "scale" : "shift");
      parameter.parameter.shape = {o_.width};
      parameter.unit = u;
      parameter.offset = k * second;
      p_.parameters.push_back(parameter);
      p_.values.push_back({parameter.parameter.name, index});  // value i = parameter i
    }
    unit.shard_elements = round_up(ceil_div(second + o_.width, o_.ranks), 64);
    unit.padded_elements = unit.shard_elements * o_.ranks;
    p_.units.push_back(unit);
  }

  // A tensor of its own storage.
  int32_t tensor(const std::string& name, DType dtype, Shape shape, Arena arena, TensorKind kind, int32_t unit = kNone) {
    int64_t& end = p_.arena_bytes[static_cast<int>(arena)];
    const int32_t id = part(name, dtype, std::move(shape), arena, kind, end, unit);
    end = round_up(end + tensor_span_bytes(p_.tensors[id]), kArenaAlignment);
    return id;
  }
  int32_t part(const std::string& name, DType dtype, Shape shape, Arena arena, TensorKind kind, int64_t offset, int32_t unit = kNone) {
    PlanTensor t{.name = name,
                 .dtype = dtype,
                 .shape = shape,
                 .strides = contiguous_strides(shape),
                 .kind = kind,
                 .arena = arena,
                 .offset = offset,
                 .unit = unit};
    p_.tensors.push_back(t);
    return static_cast<int32_t>(p_.tensors.size()) - 1;
  }

  void add_state() {
    for (int u = 0; u < o_.units; ++u) {
      PlanUnit& unit = p_.units[u];
      unit.weights_tensor = tensor(unit.name + ".weights", DType::f32, {unit.shard_elements}, Arena::state, TensorKind::weights, u);
      unit.gradient_tensor = tensor(unit.name + ".gradient", DType::f32, {unit.shard_elements}, carried() ? Arena::transient : Arena::state,
                                    TensorKind::gradients, u);
    }
    const Shape metrics = {metrics_elements(o_.micro_batches)};
    p_.roles.metrics = tensor("metrics", DType::f64, metrics, Arena::state, TensorKind::metrics);
    p_.roles.report = tensor("report", DType::f64, {kReportFields}, Arena::state, TensorKind::metrics);
    p_.roles.eval_metrics = tensor("eval_metrics", DType::f64, metrics, Arena::state, TensorKind::metrics);
    p_.roles.eval_report = tensor("eval_report", DType::f64, {kReportFields}, Arena::state, TensorKind::metrics);
    constant_ = tensor("constant", DType::f32, {3}, Arena::state, TensorKind::constant);
    p_.constants.push_back({constant_, std::string(12, '\1')});
    PlanInput input{.name = "x", .dtype = DType::f32, .shape = {o_.samples, o_.width}};
    input.tensor = tensor("x", DType::f32, input.shape, Arena::staging, TensorKind::input);
    p_.inputs.push_back(input);
  }

  // Parameters of a flat buffer at their offsets.
  std::vector<int32_t> views(const PlanUnit& unit, int32_t whole, TensorKind kind) {
    std::vector<int32_t> out;
    const PlanTensor buffer = p_.tensors[whole];
    for (const UnitParameter& q : unit.parameters)
      out.push_back(part(buffer.name + "." + std::to_string(q.parameter), DType::f32, {q.elements}, buffer.arena, kind,
                         buffer.offset + q.offset * 4, buffer.unit));
    return out;
  }

  void add_transient() {
    const Shape x = {o_.samples, o_.width};
    const Shape whole = {p_.units[0].padded_elements};
    for (int s = 0; s <= o_.prefetch; ++s) {
      slots_.push_back(tensor(fmt::format("slot.{}", s), DType::f32, whole, Arena::transient, TensorKind::slot));
      slot_views_.push_back(views(p_.units[0], slots_[s], TensorKind::slot));
    }
    for (int u = 0; u < o_.units; ++u) {
      reduce_.push_back(tensor(fmt::format("reduce.{}", u), DType::f32, whole, Arena::transient, TensorKind::reduce_buffer, u));
      reduce_views_.push_back(views(p_.units[u], reduce_[u], TensorKind::reduce_buffer));
      x_.push_back(u == 0 ? p_.inputs[0].tensor : tensor(fmt::format("x.{}", u), DType::f32, x, Arena::transient, TensorKind::activation));
    }
    x_.push_back(tensor("y", DType::f32, x, Arena::transient, TensorKind::activation));
    for (int k = 0; k < 2; ++k) dx_.push_back(tensor(fmt::format("dx.{}", k), DType::f32, x, Arena::transient, TensorKind::activation));
  }

  PlanProgram& program(Program program) {
    p_.programs.push_back({.program = program});
    return p_.programs.back();
  }
  int add(Step step) {
    auto& steps = p_.programs.back().steps;
    for (int32_t w : step.waits) steps[w].records = true;
    steps.push_back(std::move(step));
    return static_cast<int>(steps.size()) - 1;
  }
  static std::vector<Operand> operands(std::initializer_list<int32_t> tensors) {
    std::vector<Operand> out;
    for (int32_t t : tensors) out.push_back({t, kNone});
    return out;
  }
  Step kernel(OpKind op, std::initializer_list<int32_t> in, std::initializer_list<int32_t> out, int32_t unit = kNone) {
    return {.kind = StepKind::kernel,
            .op = op,
            .stream = StreamKind::compute,
            .inputs = operands(in),
            .outputs = operands(out),
            .unit = unit,
            .origin = fmt::format("node_{}", p_.programs.back().steps.size())};
  }
  int32_t unit_of_use(int use) const { return use < o_.units ? use : 2 * o_.units - 1 - use; }

  int gather(int use, std::vector<int32_t> waits) {
    const int32_t u = unit_of_use(use), slot = use % (o_.prefetch + 1);
    Step s{.kind = StepKind::all_gather,
           .op = OpKind::gather_weights,
           .stream = StreamKind::gather,
           .waits = std::move(waits),
           .inputs = operands({p_.units[u].weights_tensor}),
           .outputs = operands({slots_[slot]}),
           .unit = u};
    for (int k = 0; k < 2; ++k) s.outputs.push_back({slot_views_[slot][k], p_.units[u].parameters[k].parameter});
    return add(s);
  }

  // Forward and backward share the gathering: `uses` in order, each gathered `prefetch` uses ahead, freed after its kernel.
  template <typename Fn>
  void chain(int uses, Fn&& use_unit) {
    std::vector<int> gathers, frees;
    for (int j = 0; j < uses; ++j) {
      while (static_cast<int>(gathers.size()) < std::min(uses, j + o_.prefetch + 1)) {
        const int next = static_cast<int>(gathers.size()), before = next - (o_.prefetch + 1);
        gathers.push_back(gather(next, before >= 0 ? std::vector<int32_t>{frees[before]} : std::vector<int32_t>{}));
      }
      use_unit(j, gathers[j]);
      const int32_t slot = j % (o_.prefetch + 1);
      frees.push_back(add({.kind = StepKind::free,
                           .op = OpKind::free_unit,
                           .stream = StreamKind::compute,
                           .inputs = operands({slots_[slot]}),
                           .unit = unit_of_use(j)}));
    }
  }

  void forward_use(int j, int gathered, int32_t metrics) {
    const auto& w = slot_views_[j % (o_.prefetch + 1)];
    Step s = kernel(OpKind::mul, {x_[j], w[0], w[1]}, {x_[j + 1]});
    s.inputs[1].value = 2 * j;
    s.inputs[2].value = 2 * j + 1;
    s.waits = {gathered};
    add(s);
    if (j == o_.units - 1) add(kernel(OpKind::record_loss, {x_[o_.units], metrics}, {metrics}));
  }

  void backward_use(int j, int gathered) {
    const int32_t u = unit_of_use(j), dy = j == o_.units ? x_[o_.units] : dx_[(j + 1) % 2];
    Step s = kernel(OpKind::silu_grad, {dy, x_[u], slot_views_[j % (o_.prefetch + 1)][0]},
                    {dx_[j % 2], reduce_views_[u][0], reduce_views_[u][1]});
    s.inputs[2].value = 2 * u;
    s.waits = {gathered};
    add(s);
    const int filled = add(kernel(OpKind::fill_padding, {reduce_views_[u][0], reduce_views_[u][1]}, {reduce_[u]}, u));
    add({.kind = StepKind::reduce_scatter,
         .op = OpKind::reduce_scatter,
         .stream = StreamKind::reduce,
         .waits = {filled},
         .inputs = operands({carried() ? kNone : p_.units[u].gradient_tensor, reduce_[u], reduce_views_[u][0], reduce_views_[u][1]}),
         .outputs = operands({p_.units[u].gradient_tensor}),
         .unit = u});
  }

  void add_load() {
    program(Program::load);
    for (int u = 0; u < o_.units; ++u)
      add({.kind = StepKind::host,
           .op = OpKind::load_unit,
           .stream = StreamKind::compute,
           .outputs =
               carried() ? operands({p_.units[u].weights_tensor}) : operands({p_.units[u].weights_tensor, p_.units[u].gradient_tensor}),
           .unit = u});
  }

  void add_micro_step() {
    program(Program::micro_step);
    chain(2 * o_.units, [&](int j, int gathered) {
      if (j < o_.units)
        forward_use(j, gathered, p_.roles.metrics);
      else
        backward_use(j, gathered);
    });
  }

  void add_fold(int32_t metrics, int32_t report) {
    const int reduced = add({.kind = StepKind::all_reduce,
                             .op = OpKind::all_reduce,
                             .stream = StreamKind::reduce,
                             .inputs = operands({metrics}),
                             .outputs = operands({metrics})});
    Step fold = kernel(OpKind::fold_metrics, {metrics, report}, {report, metrics});
    fold.waits = {reduced};
    fold.attributes.set(Attr::value, int64_t{1});
    add(fold);
  }

  void add_update() {
    program(Program::update);
    add_fold(p_.roles.metrics, p_.roles.report);
    for (int u = 0; u < o_.units; ++u) {
      const PlanUnit& unit = p_.units[u];
      add(kernel(OpKind::optimizer_update, {unit.weights_tensor, unit.gradient_tensor, p_.roles.report},
                 {unit.weights_tensor, unit.gradient_tensor}, u));
    }
  }

  void add_eval() {
    program(Program::eval_step);
    chain(o_.units, [&](int j, int gathered) { forward_use(j, gathered, p_.roles.eval_metrics); });
    program(Program::eval_end);
    add_fold(p_.roles.eval_metrics, p_.roles.eval_report);
  }

  void add_save() {
    program(Program::save);
    chain(o_.units, [&](int j, int gathered) {
      add({.kind = StepKind::host,
           .op = OpKind::export_unit,
           .stream = StreamKind::compute,
           .waits = {gathered},
           .inputs = operands({slots_[j % (o_.prefetch + 1)]}),
           .unit = j});
    });
  }

  const ChainOptions o_;
  Plan p_;
  int32_t constant_ = kNone;
  std::vector<int32_t> slots_, reduce_, x_, dx_;
  std::vector<std::vector<int32_t>> slot_views_, reduce_views_;
};

}  // namespace

std::shared_ptr<const Plan> make_chain_plan(const ChainOptions& options) { return ChainBuilder(options).build(); }

}  // namespace zeroplan::test
