// LSTM, GRU and RNN, unrolled over time.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/parts.h"
#include "graph/onnx/recurrent.h"

namespace zeroplan {
namespace {

struct Kind {
  int64_t gates;
  RecurrentStep step;
  std::vector<const char*> activations;
  bool cell_state;
};

struct Direction {
  std::vector<ValueId> y;  // per time step [B, H]; empty where Y is not wanted
  RecurrentState last;
};

class Unrolled {
 public:
  Unrolled(DecodeContext& c, Kind kind)
      : c_(c), b_(c.build), kind_(std::move(kind)), limit_(c.build), batch_first_(c.attr_int("layout", 0) != 0) {
    if (c.rank(0) != 3) throw Error(fmt::format("its input has shape {}; it needs time, batch and features", to_string(c.shape(0))));
    x_ = batch_first_ ? b_.transpose(c.in(0), {1, 0, 2}) : c.in(0);
    steps_ = b_.shape(x_)[0];
    batch_ = b_.shape(x_)[1];
    const std::string direction = c.attr_string("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      throw Error(fmt::format("its direction '{}' is unknown", direction));
    directions_ = direction == "bidirectional" ? 2 : 1;
    limit_.check_steps(steps_);
    first_reversed_ = direction == "reverse";
    check_weights();
    activations_ = read_activations(c, directions_, kind_.activations);
    read_lengths();
  }

  void run() {
    std::vector<Direction> all;
    for (int64_t d = 0; d < directions_; ++d) all.push_back(run(read_layer(d), read_state(d), first_reversed_ || d == 1));
    if (c_.wants(0)) c_.out(0, outputs(all));
    if (c_.wants(1)) c_.out(1, last(all, &RecurrentState::h));
    if (kind_.cell_state && c_.wants(2)) c_.out(2, last(all, &RecurrentState::c));
  }

 private:
  void check_weights() {
    if (c_.rank(2) != 3) throw Error("its recurrence weight needs rank 3");
    hidden_ = c_.shape(2)[2];
    const int64_t rows = kind_.gates * hidden_;
    const auto expect = [&](int i, const Shape& shape) {
      if (c_.has(i) && c_.shape(i) != shape)
        throw Error(fmt::format("its input {} has shape {}, but {} is needed", i, to_string(c_.shape(i)), to_string(shape)));
    };
    expect(1, {directions_, rows, b_.shape(x_)[2]});
    expect(2, {directions_, rows, hidden_});
    expect(3, {directions_, 2 * rows});
    expect(4, {batch_});
    const Shape state = batch_first_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_};
    expect(5, state);
    if (!kind_.cell_state) return;
    expect(6, state);
    expect(7, {directions_, 3 * hidden_});
  }

  // [T, B, 1]: whether the step is part of the sequence; none where all sequences have full length.
  void read_lengths() {
    if (!c_.has(4)) return;
    if (b_.is_constant(c_.in(4))) {
      bool full = true;
      for (const int64_t length : c_.ints(4, "sequence_lens")) full = full && length >= steps_;
      if (full) return;
    }
    const std::vector<int64_t> times = b_.counting(steps_);
    const ValueId lengths = b_.reshape(b_.cast(c_.in(4), DType::i64), {1, batch_, 1});
    valid_ = b_.add(OpKind::less, {b_.reshape(b_.ints(times), {steps_, 1, 1}), lengths});
  }

  RecurrentLayer read_layer(int64_t d) {
    RecurrentLayer layer;
    layer.hidden = hidden_;
    layer.activations = activations_[d];
    layer.clip = c_.attr_float("clip", 0);
    layer.input_forget = c_.attr_int("input_forget", 0) != 0;
    layer.reset_after = c_.attr_int("linear_before_reset", 0) != 0;
    layer.input_weight = b_.transpose(item(b_, c_.in(1), 0, d), {1, 0});
    layer.recurrent_weight = b_.transpose(item(b_, c_.in(2), 0, d), {1, 0});
    if (c_.has(3)) read_bias(item(b_, c_.in(3), 0, d), layer);
    if (kind_.cell_state && c_.has(7)) layer.peepholes = b_.reshape(item(b_, c_.in(7), 0, d), {3, hidden_});
    return layer;
  }

  // Both biases are added to the input's share, but for the one that a GRU's reset gate scales.
  void read_bias(ValueId bias, RecurrentLayer& layer) {
    const int64_t rows = kind_.gates * hidden_;
    const ValueId input = part(b_, bias, 0, 0, rows), recurrent = part(b_, bias, 0, rows, rows);
    if (!layer.reset_after) {
      layer.input_bias = b_.add(OpKind::add, {input, recurrent});
      return;
    }
    const int64_t shared = rows - hidden_;
    const ValueId sum = b_.add(OpKind::add, {part(b_, input, 0, 0, shared), part(b_, recurrent, 0, 0, shared)});
    layer.input_bias = join(b_, {sum, part(b_, input, 0, shared, hidden_)}, 0);
    layer.recurrent_bias = part(b_, recurrent, 0, shared, hidden_);
  }

  ValueId initial(int input, int64_t d) {
    if (c_.has(input)) return item(b_, c_.in(input), batch_first_ ? 1 : 0, d);
    return b_.broadcast(b_.scalar(0, b_.dtype(x_)), {batch_, hidden_});
  }

  RecurrentState read_state(int64_t d) {
    RecurrentState state{initial(5, d), kNone};
    if (kind_.cell_state) state.c = initial(6, d);
    return state;
  }

  Direction run(const RecurrentLayer& layer, RecurrentState state, bool reversed) {
    ValueId gates = b_.add(OpKind::matmul, {x_, layer.input_weight});
    if (layer.input_bias != kNone) gates = b_.add(OpKind::add, {gates, layer.input_bias});
    Direction out;
    out.y.assign(c_.wants(0) ? steps_ : 0, kNone);
    for (int64_t done = 0; done < steps_; ++done) {
      const int64_t t = reversed ? steps_ - 1 - done : done;
      const RecurrentState next = kind_.step(b_, layer, item(b_, gates, 0, t), state);
      const ValueId valid = valid_ == kNone ? kNone : item(b_, valid_, 0, t);
      if (c_.wants(0)) out.y[t] = chosen(valid, next.h, b_.scalar(0, b_.dtype(x_)));
      state = {chosen(valid, next.h, state.h), next.c == kNone ? kNone : chosen(valid, next.c, state.c)};
      limit_.check(done + 1, steps_ * directions_);
    }
    out.last = state;
    return out;
  }

  ValueId chosen(ValueId valid, ValueId yes, ValueId no) { return valid == kNone ? yes : b_.add(OpKind::where, {valid, yes, no}); }

  // [T, D, B, H], or [B, T, D, H]
  ValueId outputs(const std::vector<Direction>& all) {
    if (steps_ == 0) throw Error("its sequence is empty");
    std::vector<ValueId> times;
    for (const Direction& d : all) times.push_back(stack(b_, d.y, 0));
    const ValueId y = stack(b_, times, 1);
    return batch_first_ ? b_.transpose(y, {2, 0, 1, 3}) : y;
  }

  // [D, B, H], or [B, D, H]
  ValueId last(const std::vector<Direction>& all, ValueId RecurrentState::*which) {
    std::vector<ValueId> states;
    for (const Direction& d : all) states.push_back(d.last.*which);
    return stack(b_, states, batch_first_ ? 1 : 0);
  }

  DecodeContext& c_;
  FoldingBuilder& b_;
  const Kind kind_;
  const UnrollLimit limit_;
  const bool batch_first_;
  ValueId x_ = kNone, valid_ = kNone;
  int64_t steps_ = 0, batch_ = 0, hidden_ = 0, directions_ = 1;
  bool first_reversed_ = false;
  std::vector<std::vector<Activation>> activations_;
};

void lstm(DecodeContext& c) { Unrolled(c, {4, lstm_step, {"Sigmoid", "Tanh", "Tanh"}, true}).run(); }

void gru(DecodeContext& c) { Unrolled(c, {3, gru_step, {"Sigmoid", "Tanh"}, false}).run(); }

void rnn(DecodeContext& c) { Unrolled(c, {1, rnn_step, {"Tanh"}, false}).run(); }

}  // namespace

void add_recurrent_decoders(DecoderTable& t) {
  t["LSTM"] = {lstm, gradient_to({0, 1, 2, 3, 5, 6, 7})};
  t["GRU"] = {gru, gradient_to({0, 1, 2, 3, 5, 6, 7})};
  t["RNN"] = {rnn, gradient_to({0, 1, 2, 3, 5, 6, 7})};
}

}  // namespace zeroplan
