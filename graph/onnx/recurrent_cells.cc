// One time step of LSTM, GRU and RNN, after the formulas in ONNX's text of these operators.
#include "graph/onnx/recurrent.h"

namespace zeroplan {
namespace {

// The columns of some of the gates.
Term gates(const RecurrentLayer& layer, Term all, int64_t first, int64_t count = 1) {
  return part(all, all.rank() - 1, first * layer.hidden, count * layer.hidden);
}

Term peep(const RecurrentLayer& layer, Term gate, Term c, int64_t row) {
  return layer.peepholes ? gate + c * part(*layer.peepholes, 0, row, 1) : gate;
}

Term activated(const RecurrentLayer& layer, size_t which, Term x) {
  if (layer.clip > 0) x = clamp(x, -layer.clip, layer.clip);
  return activate(layer.activations[which], x);
}

}  // namespace

// Gates i, o, f, c.
RecurrentState lstm_step(const RecurrentLayer& layer, Term x, const RecurrentState& before) {
  const Term all = x + matmul(before.h, layer.recurrent_weight);
  const Term i = activated(layer, 0, peep(layer, gates(layer, all, 0), *before.c, 0));
  const Term f = layer.input_forget ? 1 - i : activated(layer, 0, peep(layer, gates(layer, all, 2), *before.c, 2));
  const Term c = f * *before.c + i * activated(layer, 1, gates(layer, all, 3));
  const Term o = activated(layer, 0, peep(layer, gates(layer, all, 1), c, 1));
  return {o * activate(layer.activations[2], c), c};
}

// Gates z, r, h.
RecurrentState gru_step(const RecurrentLayer& layer, Term x, const RecurrentState& before) {
  const auto zr_of = [&](Term share) { return activated(layer, 0, gates(layer, x, 0, 2) + share); };
  const auto output = [&](Term zr, Term inner) {
    const Term z = gates(layer, zr, 0), h = activated(layer, 1, gates(layer, x, 2) + inner);
    return RecurrentState{(1 - z) * h + z * before.h, std::nullopt};
  };
  if (layer.reset_after) {
    const Term recurrent = matmul(before.h, layer.recurrent_weight), zr = zr_of(gates(layer, recurrent, 0, 2));
    const Term h = gates(layer, recurrent, 2);
    return output(zr, gates(layer, zr, 1) * (layer.recurrent_bias ? h + *layer.recurrent_bias : h));
  }
  const Term zr = zr_of(matmul(before.h, gates(layer, layer.recurrent_weight, 0, 2)));
  return output(zr, matmul(gates(layer, zr, 1) * before.h, gates(layer, layer.recurrent_weight, 2)));
}

RecurrentState rnn_step(const RecurrentLayer& layer, Term x, const RecurrentState& before) {
  return {activated(layer, 0, x + matmul(before.h, layer.recurrent_weight)), std::nullopt};
}

}  // namespace zeroplan
