// LSTM, GRU and RNN, unrolled over time.
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/recurrent.h"
#include "graph/onnx/unroll_limit.h"

namespace zeroplan {
namespace {

struct Kind {
  int64_t gates;
  RecurrentStep step;
  std::vector<const char*> activations;
  bool cell_state;
};

struct Direction {
  std::vector<Term> y;  // per time step [B, H]; empty where Y is not wanted
  RecurrentState last;
};

class Unrolled {
 public:
  Unrolled(DecodeContext& c, Kind kind)
      : c_(c), kind_(std::move(kind)), limit_(c.build), batch_first_(c.attr_int("layout", 0) != 0), x_(term(c, 0)) {
    if (c.rank(0) != 3) throw Error(fmt::format("its input has shape {}; it needs time, batch and features", to_string(c.shape(0))));
    if (batch_first_) x_ = x_.transpose({1, 0, 2});
    steps_ = x_.shape()[0];
    batch_ = x_.shape()[1];
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
    if (c_.wants(0)) result(c_, outputs(all));
    if (c_.wants(1)) result(c_, last(all, [](const RecurrentState& state) { return state.h; }), 1);
    if (kind_.cell_state && c_.wants(2)) result(c_, last(all, [](const RecurrentState& state) { return *state.c; }), 2);
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
    expect(1, {directions_, rows, x_.shape()[2]});
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
    if (c_.build.is_constant(c_.in(4))) {
      bool full = true;
      for (const int64_t length : c_.ints(4, "sequence_lens")) full = full && length >= steps_;
      if (full) return;
    }
    valid_ = positions(c_.build, steps_, 0, 3) < term(c_, 4).cast(DType::i64).reshape({1, batch_, 1});
  }

  RecurrentLayer read_layer(int64_t d) {
    const auto weight = [&](int i) { return item(term(c_, i), 0, d).transpose({1, 0}); };
    RecurrentLayer layer{weight(1), weight(2)};
    layer.hidden = hidden_;
    layer.activations = activations_[d];
    layer.clip = c_.attr_float("clip", 0);
    layer.input_forget = c_.attr_int("input_forget", 0) != 0;
    layer.reset_after = c_.attr_int("linear_before_reset", 0) != 0;
    if (c_.has(3)) read_bias(item(term(c_, 3), 0, d), layer);
    if (kind_.cell_state && c_.has(7)) layer.peepholes = item(term(c_, 7), 0, d).reshape({3, hidden_});
    return layer;
  }

  // Both biases are added to the input's share, but for the one that a GRU's reset gate scales.
  void read_bias(Term bias, RecurrentLayer& layer) {
    const int64_t rows = kind_.gates * hidden_, shared = layer.reset_after ? rows - hidden_ : rows;
    layer.input_bias = part(bias, 0, 0, shared) + part(bias, 0, rows, shared);
    if (!layer.reset_after) return;
    layer.input_bias = concat({*layer.input_bias, part(bias, 0, shared, hidden_)}, 0);
    layer.recurrent_bias = part(bias, 0, rows + shared, hidden_);
  }

  Term initial(int input, int64_t d) {
    return c_.has(input) ? item(term(c_, input), batch_first_ ? 1 : 0, d) : x_.number(0).broadcast({batch_, hidden_});
  }

  RecurrentState read_state(int64_t d) { return {initial(5, d), kind_.cell_state ? std::optional(initial(6, d)) : std::nullopt}; }

  Direction run(const RecurrentLayer& layer, const RecurrentState& first, bool reversed) {
    Term gates = matmul(x_, layer.input_weight);
    if (layer.input_bias) gates = gates + *layer.input_bias;
    Direction out{{}, first};
    if (c_.wants(0)) out.y.assign(steps_, first.h);
    for (int64_t done = 0; done < steps_; ++done) {
      const int64_t t = reversed ? steps_ - 1 - done : done;
      const RecurrentState next = kind_.step(layer, item(gates, 0, t), out.last);
      const auto valid = valid_ ? std::optional(item(*valid_, 0, t)) : std::nullopt;
      if (c_.wants(0)) out.y[t] = valid ? where(*valid, next.h, 0) : next.h;
      out.last.h = valid ? where(*valid, next.h, out.last.h) : next.h;
      if (next.c) out.last.c = valid ? where(*valid, *next.c, *out.last.c) : *next.c;
      limit_.check(done + 1, steps_ * directions_);
    }
    return out;
  }

  // [T, D, B, H], or [B, T, D, H]
  Term outputs(const std::vector<Direction>& all) {
    if (steps_ == 0) throw Error("its sequence is empty");
    std::vector<Term> times;
    for (const Direction& d : all) times.push_back(stack(d.y, 0));
    const Term y = stack(times, 1);
    return batch_first_ ? y.transpose({2, 0, 1, 3}) : y;
  }

  // [D, B, H], or [B, D, H]
  template <typename Fn>
  Term last(const std::vector<Direction>& all, const Fn& of) {
    std::vector<Term> states;
    for (const Direction& d : all) states.push_back(of(d.last));
    return stack(states, batch_first_ ? 1 : 0);
  }

  DecodeContext& c_;
  const Kind kind_;
  const UnrollLimit limit_;
  const bool batch_first_;
  Term x_;                     // [T, B, I]
  std::optional<Term> valid_;  // [T, B, 1]
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
