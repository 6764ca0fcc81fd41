#pragma once
// What an arena holds at one point of a program: stretches of bytes, each with the value that a step left there. Private to runtime/plan.
#include <array>
#include <cstdint>
#include <map>

#include "runtime/plan/verify_context.h"

namespace zeroplan {

struct Cell {
  int64_t end = 0;
  int32_t value = kNone;   // kNone: nothing that may be read
  int32_t tensor = kNone;  // the value's layout
  int32_t token = kNone;   // value of the fill_padding that completed the buffer `token_tensor`
  int32_t token_tensor = kNone;
  int32_t weights_of = kNone;                       // holds all parameters of this unit as they are during the program
  int writer = -1;                                  // step; -1: before the program
  std::array<int, kStreams> reader = {-1, -1, -1};  // last step on each stream that read it
};

// Stretches do not overlap. Every operation costs the stretches that it meets, amortised.
class Cells {
 public:
  // Calls fn(begin, cell) for each stretch in [begin, end), cut to that range; returns whether they cover it.
  template <typename Fn>
  bool visit(int64_t begin, int64_t end, Fn&& fn) {
    if (begin >= end) return true;
    split(begin);
    split(end);
    auto it = cells_.lower_bound(begin);
    int64_t covered = begin;
    bool whole = true;
    for (; it != cells_.end() && it->first < end; ++it) {
      whole = whole && it->first <= covered;
      covered = it->second.end;
      fn(it->first, it->second);
    }
    return whole && covered >= end;
  }

  void assign(int64_t begin, int64_t end, Cell cell) {
    if (begin >= end) return;
    split(begin);
    split(end);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cell.end = end;
    cells_.emplace(begin, cell);
  }

 private:
  void split(int64_t at) {
    auto it = cells_.lower_bound(at);
    if (it == cells_.begin()) return;
    --it;
    if (it->second.end <= at) return;
    Cell rest = it->second;
    it->second.end = at;
    cells_.emplace(at, rest);
  }

  std::map<int64_t, Cell> cells_;
};

// Decides whether an operand finds its value in a stretch: the value itself, a copy of it, a parameter inside its unit's weights, or a view
// of one of these whose geometry follows from the source graph's view nodes.
class ValueMatcher {
 public:
  ValueMatcher(const VerifyContext& context, const CopyNames& copies) : context_(context), copies_(copies) {}
  bool matches(const Operand& read, const Cell& cell) const;
  // The value at the start of the chain of views that ends in `value`.
  int32_t root(int32_t value) const;

 private:
  struct Layout {
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
    int64_t offset = 0;  // bytes
  };
  bool base_layout(int32_t value, const Cell& cell, Layout& layout) const;
  bool apply_view(int32_t value, Layout& layout) const;
  int32_t view_of(int32_t value) const;  // source node, kNone where the value is no view

  const VerifyContext& context_;
  const CopyNames& copies_;
};

}  // namespace zeroplan
