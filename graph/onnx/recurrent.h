#pragma once
// LSTM, GRU and RNN: what the three share. Each time step becomes one matrix product and elementwise nodes.
#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/terms.h"

namespace zeroplan {

struct Activation {
  std::string name;  // lower case
  double alpha = 0, beta = 0;
};

// `otherwise`: names per direction where the node lists none. One list per direction.
std::vector<std::vector<Activation>> read_activations(const DecodeContext& c, int64_t directions,
                                                      const std::vector<const char*>& otherwise);
Term activate(const Activation& activation, Term x);

// One direction of a layer: H hidden units, G gates, I inputs.
struct RecurrentLayer {
  Term input_weight;                   // [I, G·H]
  Term recurrent_weight;               // [H, G·H]
  std::optional<Term> input_bias;      // [G·H]
  std::optional<Term> recurrent_bias;  // [H]: that of a GRU's h, inside its reset
  std::optional<Term> peepholes;       // [3, H]: i, o, f; LSTM alone
  std::vector<Activation> activations;
  int64_t hidden = 0;
  double clip = 0;            // 0: none
  bool input_forget = false;  // LSTM
  bool reset_after = false;   // GRU: linear_before_reset
};

struct RecurrentState {
  Term h;
  std::optional<Term> c;  // [B, H]; c: LSTM alone
};

// One time step: `x` [B, G·H] is the input's share of the gates, with the biases that can be added to it at once.
using RecurrentStep = RecurrentState (*)(const RecurrentLayer& layer, Term x, const RecurrentState& before);
RecurrentState lstm_step(const RecurrentLayer& layer, Term x, const RecurrentState& before);
RecurrentState gru_step(const RecurrentLayer& layer, Term x, const RecurrentState& before);
RecurrentState rnn_step(const RecurrentLayer& layer, Term x, const RecurrentState& before);

}  // namespace zeroplan
