// Rules flow (reads see the value they name), race (steps that touch the same bytes are ordered), overlap (within a step) and border
// (exits).
#include <algorithm>

#include "runtime/plan/verify_cells.h"

namespace zeroplan {
namespace {

class Flow {
 public:
  Flow(VerifyContext& context, const PlanProgram& program, std::vector<int32_t>& input_values)
      : context_(context),
        plan_(context.plan),
        program_(program),
        order_(program),
        copies_(context, program),
        matcher_(context, copies_),
        input_values_(input_values) {}

  void run() {
    enter();
    for (index_ = 0; index_ < static_cast<int>(program_.steps.size()) && !context_.full(); ++index_) step(program_.steps[index_]);
    leave();
  }

 private:
  Cells& cells(int32_t tensor) { return arenas_[static_cast<int>(plan_.tensors[tensor].arena)]; }

  void fail(std::string_view rule, std::string message) { context_.fail(rule, program_, index_, std::move(message)); }
  std::string step_name() const { return describe_step(plan_, program_.steps[index_]); }

  // The whole buffer, from the start of the program on.
  void holds_weights(int32_t tensor, int32_t unit) {
    cells(tensor).visit(context_.ranges[tensor][0], context_.ranges[tensor][1], [&](int64_t, Cell& cell) {
      if (cell.tensor == tensor && cell.value != kNone) cell.weights_of = unit;
    });
  }

  void enter() {
    for (const Operand& o : program_.entry) {
      if (o.tensor == kNone) continue;
      if (program_.program == Program::load && plan_.tensors[o.tensor].kind != TensorKind::constant) continue;  // undefined until loaded
      Cell cell;
      cell.value = o.value;
      cell.tensor = o.tensor;
      cells(o.tensor).assign(context_.ranges[o.tensor][0], context_.ranges[o.tensor][1], cell);
    }
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const PlanUnit& unit = plan_.units[u];
      if (unit.weights == Placement::replicated) holds_weights(unit.weights_tensor, static_cast<int32_t>(u));
      const bool exports = program_.program == Program::save && has_master(unit) && unit.optimizer == Placement::replicated;
      if (exports) holds_weights(unit_weights(unit, unit.gradient_dtype), static_cast<int32_t>(u));
    }
    if (program_.program != Program::micro_step && program_.program != Program::eval_step) return;
    for (const PlanInput& input : plan_.inputs) {
      Cell cell;
      cell.value = input_values_[input.tensor];
      cell.tensor = input.tensor;
      cells(input.tensor).assign(context_.ranges[input.tensor][0], context_.ranges[input.tensor][1], cell);
    }
  }

  void leave() {
    index_ = -1;
    for (const Operand& o : program_.exit) {
      if (o.tensor == kNone || o.value == kNone) continue;
      bool good = true;
      const bool covered = cells(o.tensor).visit(context_.ranges[o.tensor][0], context_.ranges[o.tensor][1],
                                                 [&](int64_t, Cell& cell) { good = good && matcher_.matches(o, cell); });
      if (!good || !covered)
        fail("border",
             fmt::format("{} does not hold {} when the program ends", context_.tensor_name(o.tensor), context_.value_name(o.value)));
    }
  }

  void step(const Step& s) {
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      const bool whole = s.kind == StepKind::free || s.kind == StepKind::host;
      if (whole)
        read_gathered(s.inputs[i], s.unit);
      else if (s.kind != StepKind::reduce_scatter || i != 1 || s.inputs[i].value != kNone)
        read(s.inputs[i]);
    }
    check_overlap(s);
    if (s.kind == StepKind::all_gather)
      write_gathered(s);
    else if (s.kind == StepKind::free)
      write(s.inputs[0].tensor, kNone);
    else if (s.op == OpKind::fill_padding)
      write_padding(s);
    else
      for (const Operand& o : s.outputs) write(o.tensor, o.value);
    if (s.workspace.tensor != kNone) write(s.workspace.tensor, kNone);
  }

  // An input tensor whose value the plan does not state shows the value that its first reader names.
  void bind_input(Cell& cell, const Operand& o) {
    const int32_t value = matcher_.root(o.value);
    const bool leaf = value != kNone && context_.source_of[value] == kNone && context_.parameter_of[value] == kNone;
    const bool taken = std::find(input_values_.begin(), input_values_.end(), value) != input_values_.end();
    if (!leaf || taken) return;
    cell.value = value;
    input_values_[cell.tensor] = value;
  }

  // The step's read of bytes is ordered after their writer, and a later writer has to be ordered after it.
  void note_reader(Cell& cell, int64_t begin) {
    if (!order_.before(cell.writer, index_))
      fail("race", fmt::format("{} reads {} byte {} while step {} may still write it", step_name(), context_.value_name(cell.value), begin,
                               cell.writer));
    cell.reader[static_cast<int>(program_.steps[index_].stream)] = index_;
  }

  void read(const Operand& o) {
    if (o.tensor == kNone) return;
    const auto [begin, end] = context_.ranges[o.tensor];
    int32_t found = kNone;
    bool wrong = false;
    const bool covered = cells(o.tensor).visit(begin, end, [&](int64_t at, Cell& cell) {
      note_reader(cell, at);
      if (cell.value == kNone && cell.writer < 0 && plan_.tensors[cell.tensor].arena == Arena::staging) bind_input(cell, o);
      if (wrong || matcher_.matches(o, cell)) return;
      wrong = true;
      found = cell.value;
    });
    if (wrong || !covered)
      fail("flow", fmt::format("{} expects {} in {}, which {}", step_name(), context_.value_name(o.value), context_.tensor_name(o.tensor),
                               wrong ? "holds " + context_.value_name(found) + " or another view of it" : "is not written in full"));
  }

  void read_gathered(const Operand& o, int32_t unit) {
    bool good = true;
    const bool covered = cells(o.tensor).visit(context_.ranges[o.tensor][0], context_.ranges[o.tensor][1], [&](int64_t at, Cell& cell) {
      note_reader(cell, at);
      good = good && cell.weights_of == unit && cell.tensor == o.tensor;
    });
    if (!good || !covered)
      fail("gather", fmt::format("{}: {} does not hold the gathered unit", step_name(), context_.tensor_name(o.tensor)));
  }

  // Earlier readers and writers of the bytes have to be over.
  void claim(int64_t begin, int64_t end, int32_t tensor) {
    cells(tensor).visit(begin, end, [&](int64_t, Cell& cell) {
      int other = order_.before(cell.writer, index_) || cell.writer == index_ ? -1 : cell.writer;
      for (int reader : cell.reader)
        if (reader != index_ && !order_.before(reader, index_)) other = reader;
      if (other >= 0)
        fail("race", fmt::format("{} writes {} while step {} ({}) may still use {} there", step_name(), context_.tensor_name(tensor), other,
                                 describe_step(plan_, program_.steps[other]), context_.value_name(cell.value)));
    });
  }

  void write(int32_t tensor, int32_t value) {
    const auto [begin, end] = context_.ranges[tensor];
    claim(begin, end, tensor);
    cells(tensor).assign(begin, end, written(tensor, value));
  }

  Cell written(int32_t tensor, int32_t value) const {
    Cell cell;
    cell.value = value;
    cell.tensor = tensor;
    cell.writer = index_;
    return cell;
  }

  int32_t entry_value(int32_t tensor) const {
    for (const Operand& o : program_.entry)
      if (o.tensor == tensor) return o.value;
    return kNone;
  }

  void write_gathered(const Step& s) {
    const PlanUnit& unit = plan_.units[s.unit];
    const int32_t tensor = s.outputs[0].tensor;
    const auto [begin, end] = context_.ranges[tensor];
    claim(begin, end, tensor);
    Cell cell = written(tensor, s.outputs[0].value);
    const int32_t shard = unit_weights(unit, plan_.tensors[tensor].dtype);
    if (s.inputs[0].tensor == shard && s.inputs[0].value == entry_value(shard)) cell.weights_of = s.unit;
    cells(tensor).assign(begin, end, cell);
    for (size_t k = 1; k < s.outputs.size(); ++k) {
      const int32_t value = copies_.original(s.outputs[k].value);
      if (value == kNone || context_.parameter_of[value] != unit.parameters[k - 1].parameter || cell.weights_of == kNone)
        fail("gather", fmt::format("{}: its output {} is not parameter {} of the unit", step_name(), context_.value_name(value), k - 1));
    }
  }

  // Writes the gaps between the gradients; the buffer as a whole becomes the output value.
  void write_padding(const Step& s) {
    const PlanUnit& unit = plan_.units[s.unit];
    const int32_t tensor = s.outputs[0].tensor;
    const auto [begin, end] = context_.ranges[tensor];
    const int64_t width = dtype_bytes(unit.reduce_dtype);
    int64_t at = begin;
    const auto fill = [&](int64_t until) {
      if (at >= until) return;
      claim(at, until, tensor);
      cells(tensor).assign(at, until, written(tensor, s.outputs[0].value));
    };
    for (const UnitParameter& p : unit.parameters) {
      fill(begin + p.offset * width);
      at = begin + (p.offset + p.elements) * width;
    }
    fill(end);
    cells(tensor).visit(begin, end, [&](int64_t, Cell& cell) {
      cell.token = s.outputs[0].value;
      cell.token_tensor = tensor;
    });
  }

  bool overlap(int32_t a, int32_t b) const {
    if (a == kNone || b == kNone || plan_.tensors[a].arena != plan_.tensors[b].arena) return false;
    return context_.ranges[a][0] < context_.ranges[b][1] && context_.ranges[b][0] < context_.ranges[a][1];
  }

  // May the output lie on the input? Declared pairs; or an operand given twice where the op could take either in place.
  bool may_share(const Step& s, int32_t output, int32_t input) const {
    for (const auto& [o, i] : s.in_place) {
      if (o != output) continue;
      if (i == input) return true;
      if (s.inputs[i].tensor == s.inputs[input].tensor && s.inputs[i].value == s.inputs[input].value) return true;
    }
    return false;
  }

  void check_overlap(const Step& s) {
    const bool gather = s.kind == StepKind::all_gather;
    const bool parts = gather || s.kind == StepKind::reduce_scatter || s.op == OpKind::fill_padding;
    const size_t inputs = parts ? std::min<size_t>(s.inputs.size(), s.op == OpKind::fill_padding ? 0 : 2) : s.inputs.size();
    const size_t outputs = gather ? 1 : s.outputs.size();
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < inputs; ++i) {
        const bool own_part = gather && s.inputs[i].tensor != kNone && plan_.tensors[s.inputs[i].tensor].per_rank;
        if (overlap(s.outputs[o].tensor, s.inputs[i].tensor) && !own_part &&
            !may_share(s, static_cast<int32_t>(o), static_cast<int32_t>(i)))
          fail("overlap", fmt::format("{}: output {} lies on input {}", step_name(), context_.tensor_name(s.outputs[o].tensor),
                                      context_.tensor_name(s.inputs[i].tensor)));
      }
      for (size_t other = 0; other < o; ++other)
        if (overlap(s.outputs[o].tensor, s.outputs[other].tensor))
          fail("overlap", fmt::format("{}: two outputs lie on {}", step_name(), context_.tensor_name(s.outputs[o].tensor)));
      if (overlap(s.workspace.tensor, s.outputs[o].tensor))
        fail("overlap", fmt::format("{}: its workspace lies on an output", step_name()));
    }
    for (const Operand& input : s.inputs)
      if (overlap(s.workspace.tensor, input.tensor)) fail("overlap", fmt::format("{}: its workspace lies on an input", step_name()));
  }

  VerifyContext& context_;
  const Plan& plan_;
  const PlanProgram& program_;
  StepOrder order_;
  CopyNames copies_;
  ValueMatcher matcher_;
  std::vector<int32_t>& input_values_;
  Cells arenas_[kArenas];
  int index_ = -1;
};

}  // namespace

void verify_flow(VerifyContext& context, const PlanProgram& program, std::vector<int32_t>& input_values) {
  Flow(context, program, input_values).run();
}

}  // namespace zeroplan
