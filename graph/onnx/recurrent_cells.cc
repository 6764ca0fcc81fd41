// One time step of LSTM, GRU and RNN, after the formulas in ONNX's text of these operators.
#include "graph/onnx/parts.h"
#include "graph/onnx/recurrent.h"

namespace zeroplan {
namespace {

class Cell {
 public:
  Cell(FoldingBuilder& build, const RecurrentLayer& layer) : build_(build), layer_(layer) {}

  ValueId add(ValueId a, ValueId b) { return build_.add(OpKind::add, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return build_.add(OpKind::mul, {a, b}); }
  ValueId product(ValueId h, ValueId weight) { return build_.add(OpKind::matmul, {h, weight}); }
  ValueId one_minus(ValueId x) { return build_.add(OpKind::sub, {build_.scalar(1, build_.dtype(x)), x}); }
  // The columns of some of the gates.
  ValueId gates(ValueId all, int64_t first, int64_t count = 1) {
    return part(build_, all, static_cast<int64_t>(build_.shape(all).size()) - 1, first * layer_.hidden, count * layer_.hidden);
  }
  ValueId peep(ValueId gate, ValueId c, int64_t row) {
    return layer_.peepholes == kNone ? gate : add(gate, mul(c, part(build_, layer_.peepholes, 0, row, 1)));
  }
  ValueId f(size_t which, ValueId x) {
    if (layer_.clip > 0) {
      const DType dtype = build_.dtype(x);
      x = build_.add(OpKind::maximum, {x, build_.scalar(-layer_.clip, dtype)});
      x = build_.add(OpKind::minimum, {x, build_.scalar(layer_.clip, dtype)});
    }
    return unclipped(which, x);
  }
  ValueId unclipped(size_t which, ValueId x) { return activate(build_, layer_.activations[which], x); }

 private:
  FoldingBuilder& build_;
  const RecurrentLayer& layer_;
};

}  // namespace

// Gates i, o, f, c.
RecurrentState lstm_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before) {
  Cell cell(build, layer);
  const ValueId all = cell.add(x, cell.product(before.h, layer.recurrent_weight));
  const ValueId i = cell.f(0, cell.peep(cell.gates(all, 0), before.c, 0));
  const ValueId f = layer.input_forget ? cell.one_minus(i) : cell.f(0, cell.peep(cell.gates(all, 2), before.c, 2));
  const ValueId c = cell.add(cell.mul(f, before.c), cell.mul(i, cell.f(1, cell.gates(all, 3))));
  const ValueId o = cell.f(0, cell.peep(cell.gates(all, 1), c, 1));
  return {cell.mul(o, cell.unclipped(2, c)), c};
}

// Gates z, r, h.
RecurrentState gru_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before) {
  Cell cell(build, layer);
  ValueId recurrent = kNone, zr = kNone;
  if (layer.reset_after) {
    recurrent = cell.product(before.h, layer.recurrent_weight);
    zr = cell.gates(recurrent, 0, 2);
  } else {
    zr = cell.product(before.h, cell.gates(layer.recurrent_weight, 0, 2));
  }
  zr = cell.add(cell.gates(x, 0, 2), zr);
  const ValueId z = cell.f(0, cell.gates(zr, 0)), r = cell.f(0, cell.gates(zr, 1));
  ValueId inner = kNone;
  if (layer.reset_after) {
    inner = cell.gates(recurrent, 2);
    if (layer.recurrent_bias != kNone) inner = cell.add(inner, layer.recurrent_bias);
    inner = cell.mul(r, inner);
  } else {
    inner = cell.product(cell.mul(r, before.h), cell.gates(layer.recurrent_weight, 2));
  }
  const ValueId h = cell.f(1, cell.add(cell.gates(x, 2), inner));
  return {cell.add(cell.mul(cell.one_minus(z), h), cell.mul(z, before.h)), kNone};
}

RecurrentState rnn_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before) {
  Cell cell(build, layer);
  return {cell.f(0, cell.add(x, cell.product(before.h, layer.recurrent_weight))), kNone};
}

}  // namespace zeroplan
