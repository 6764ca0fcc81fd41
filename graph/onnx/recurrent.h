#pragma once
// LSTM, GRU and RNN: what the three share. Each time step becomes one matrix product and elementwise nodes.
#include <string>
#include <vector>

#include "graph/onnx/decode.h"

namespace zeroplan {

struct Activation {
  std::string name;  // lower case
  double alpha = 0, beta = 0;
};

// `otherwise`: names per direction where the node lists none. One list per direction.
std::vector<std::vector<Activation>> read_activations(const DecodeContext& c, int64_t directions,
                                                      const std::vector<const char*>& otherwise);
ValueId activate(FoldingBuilder& build, const Activation& activation, ValueId x);

// One direction of a layer: H hidden units, G gates, I inputs.
struct RecurrentLayer {
  ValueId input_weight = kNone;      // [I, G·H]
  ValueId recurrent_weight = kNone;  // [H, G·H]
  ValueId input_bias = kNone;        // [G·H]; kNone: none
  ValueId recurrent_bias = kNone;    // likewise
  ValueId peepholes = kNone;         // [3, H]: i, o, f; LSTM alone
  std::vector<Activation> activations;
  int64_t hidden = 0;
  double clip = 0;            // 0: none
  bool input_forget = false;  // LSTM
  bool reset_after = false;   // GRU: linear_before_reset
};

struct RecurrentState {
  ValueId h = kNone, c = kNone;  // [B, H]; c: LSTM alone
};

// One time step: `x` [B, G·H] is the input's share of the gates, with the biases that can be added to it at once.
using RecurrentStep = RecurrentState (*)(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before);
RecurrentState lstm_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before);
RecurrentState gru_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before);
RecurrentState rnn_step(FoldingBuilder& build, const RecurrentLayer& layer, ValueId x, const RecurrentState& before);

}  // namespace zeroplan
