// TfIdfVectorizer on integers: how often each n-gram of a pool stands in a row.
#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/unroll_limit.h"

namespace zeroplan {
namespace {

constexpr int64_t kMostPooled = 1 << 20;

// The n-grams of one length, and the column that counts each.
struct Grams {
  int64_t length = 0;
  std::vector<int64_t> items;  // [grams, length]
  std::vector<int64_t> columns;
  int64_t count() const { return static_cast<int64_t>(columns.size()); }
};

// The pool holds the 1-grams, then the 2-grams, …; ngram_counts says where each length begins.
std::vector<Grams> read_pool(const DecodeContext& c, const std::vector<int64_t>& columns) {
  const std::vector<int64_t> pool = c.attr_ints("pool_int64s"), begins = c.attr_ints("ngram_counts");
  if (pool.empty() || static_cast<int64_t>(pool.size()) > kMostPooled)
    throw Error(fmt::format("its pool_int64s holds {} items; 1 to {} are supported, and strings are not", pool.size(), kMostPooled));
  std::vector<Grams> all;
  size_t next = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1, begin = begins[i];
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) || (end - begin) % length != 0 ||
        next + (end - begin) / length > columns.size())
      throw Error("its ngram_counts do not fit its pool and ngram_indexes");
    Grams grams{length, {pool.begin() + begin, pool.begin() + end}, {}};
    for (int64_t g = 0; g < (end - begin) / length; ++g) grams.columns.push_back(columns[next++]);
    all.push_back(std::move(grams));
  }
  return all;
}

// x [rows, length] → how often each gram stands there with `distance` between its items, [rows, grams]; kNone where the rows are too short.
ValueId occurrences(DecodeContext& c, ValueId x, const Grams& grams, int64_t distance) {
  const Shape shape = c.build.shape(x);
  const int64_t places = shape[1] - checked_mul(distance, grams.length - 1);
  if (places <= 0) return kNone;
  ValueId all = kNone;
  for (int64_t item = 0; item < grams.length; ++item) {
    const std::vector<int64_t> starts = {0, item * distance}, steps = {1, 1};
    const ValueId here =
        c.build.add(OpKind::slice, {x}, {{Attr::shape, Shape{shape[0], places}}, {Attr::starts, starts}, {Attr::steps, steps}});
    std::vector<int64_t> wanted;
    for (int64_t g = 0; g < grams.count(); ++g) wanted.push_back(grams.items[g * grams.length + item]);
    const ValueId same = c.build.add(OpKind::equal, {c.build.reshape(here, {shape[0], places, 1}), c.build.ints(wanted)});
    all = all == kNone ? same : c.build.add(OpKind::logical_and, {all, same});
  }
  return c.build.add(OpKind::reduce_sum, {c.build.cast(all, c.precision)},
                     {{Attr::axes, std::vector<int64_t>{1}}, {Attr::keepdims, int64_t{0}}});
}

// Each gram's count to its column.
ValueId spread(DecodeContext& c, ValueId counts, const Grams& grams, int64_t width) {
  HostTensor places = c.build.table(c.precision, {grams.count(), width});
  for (int64_t g = 0; g < grams.count(); ++g) places.set(g * width + grams.columns[g], 1);
  return c.build.add(OpKind::matmul, {counts, c.build.constant(std::move(places))});
}

ValueId weighted(DecodeContext& c, ValueId counts, const std::vector<int64_t>& columns, int64_t width) {
  const std::string mode = c.attr_string("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") throw Error(fmt::format("mode '{}' is unknown", mode));
  if (mode == "TF") return counts;
  const OnnxAttribute* given = c.node.find("weights");
  const std::vector<double> pooled = given ? given->floats : std::vector<double>{};
  HostTensor weights(c.precision, {width});
  for (size_t i = 0; i < columns.size(); ++i) weights.set(columns[i], i < pooled.size() ? pooled[i] : 1);
  const ValueId once = mode == "IDF" ? c.build.add(OpKind::minimum, {counts, c.build.scalar(1, c.precision)}) : counts;
  return c.build.add(OpKind::mul, {once, c.build.constant(std::move(weights))});
}

void tfidf(DecodeContext& c) {
  const Shape given = c.shape(0);
  if (given.empty() || given.size() > 2) throw Error(fmt::format("its input {} is neither a row nor rows", to_string(given)));
  const std::vector<int64_t> columns = c.attr_ints("ngram_indexes");
  const bool fit = std::all_of(columns.begin(), columns.end(), [](int64_t column) { return column >= 0 && column < kMostPooled; });
  if (columns.empty() || !fit) throw Error(fmt::format("its ngram_indexes are missing, negative or above {}", kMostPooled - 1));
  const std::vector<Grams> pool = read_pool(c, columns);
  const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
  const int64_t shortest = c.attr_int("min_gram_length", 1), longest = c.attr_int("max_gram_length", 1);
  const int64_t rows = given.size() == 2 ? given[0] : 1;
  const ValueId x = c.build.cast(c.build.reshape(c.in(0), {rows, given.back()}), DType::i64);
  ValueId sum = c.build.broadcast(c.build.scalar(0, c.precision), {rows, width});
  const UnrollLimit limit(c.build);
  for (const Grams& grams : pool) {
    if (grams.length < shortest || grams.length > longest || grams.count() == 0) continue;
    const int64_t skipped = grams.length == 1 ? 0 : c.attr_int("max_skip_count", 0);
    for (int64_t distance = 1; distance - 1 <= skipped && distance <= given.back(); ++distance) {
      const ValueId counts = occurrences(c, x, grams, distance);
      if (counts == kNone) break;
      sum = c.build.add(OpKind::add, {sum, spread(c, counts, grams, width)});
      limit.check(distance, given.back());
    }
  }
  const ValueId y = weighted(c, sum, columns, width);
  c.out(0, given.size() == 2 ? y : c.build.reshape(y, {width}));
}

}  // namespace

void add_tfidf_decoders(DecoderTable& t) { t["TfIdfVectorizer"] = tfidf; }

}  // namespace zeroplan
