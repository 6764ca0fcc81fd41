#pragma once
// Rows of updates joined with the rows of a table that sorted indices name: each element in the order of the positions.
#include "kernels/cuda/index_sort.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

// table [batch, repeats, table_rows, inner], updates [batch, repeats, count, inner]; positions count through [batch, count].
struct RowJoin {
  SortedIndices sorted;
  int64_t repeats, table_rows, count, inner;
};

constexpr int kRunAhead = 4;  // rows that are loaded together

// n: [sorted entries, repeats, inner / kItems]. The thread at the first entry of a row walks through all of them.
template <typename Op, int kItems, typename T, typename Row>
__global__ void join_rows(int64_t n, const RowJoin s, const T* updates, Row* table) {
  using Wide = typename Op::template Type<T>;
  using Group = Neighbours<T, kItems>;
  using RowGroup = Neighbours<Row, kItems>;
  for_items(n, [&](int64_t i) {
    const int64_t inner = s.inner / kItems, column = i % inner, repeat = i / inner % s.repeats, first = i / inner / s.repeats;
    const int64_t row = s.sorted.rows[first];
    if (row == s.sorted.end || (first > 0 && s.sorted.rows[first - 1] == row)) return;
    RowGroup* to =
        reinterpret_cast<RowGroup*>(table) + ((row / s.table_rows * s.repeats + repeat) * s.table_rows + row % s.table_rows) * inner;
    const RowGroup old = to[column];
    Wide values[kItems];
    for (int k = 0; k < kItems; ++k) values[k] = static_cast<Wide>(widen(old.item[k]));
    for (int64_t e = first; e < s.sorted.entries && s.sorted.rows[e] == row; e += kRunAhead) {
      Group ahead[kRunAhead];
      bool joins[kRunAhead];
#pragma unroll
      for (int a = 0; a < kRunAhead; ++a) {
        joins[a] = e + a < s.sorted.entries && s.sorted.rows[e + a] == row;
        const int64_t position = s.sorted.positions[joins[a] ? e + a : e];
        const int64_t from = (position / s.count * s.repeats + repeat) * s.count + position % s.count;
        ahead[a] = reinterpret_cast<const Group*>(updates)[from * inner + column];
      }
#pragma unroll
      for (int a = 0; a < kRunAhead; ++a)
        if (joins[a])
          for (int k = 0; k < kItems; ++k) values[k] = Op::join(values[k], static_cast<Wide>(widen(ahead[a].item[k])));
    }
    RowGroup result;
    for (int k = 0; k < kItems; ++k) result.item[k] = narrow<Row>(values[k]);
    to[column] = result;
  });
}

// Rows of the table are of T, or of its wide type.
template <typename Op, typename T, typename Row>
inline void launch_join(const KernelArgs& args, const RowJoin& s, const T* updates, Row* table) {
  constexpr int kItems = Pack<T>::kItems;
  const int64_t n = s.sorted.entries * s.repeats * s.inner;
  if (kItems > 1 && s.inner % kItems == 0 && aligned(updates) && aligned(table))
    launch_over(args, n / kItems, join_rows<Op, kItems, T, Row>, s, updates, table);
  else
    launch_over(args, n, join_rows<Op, 1, T, Row>, s, updates, table);
}

// Floating-point numbers are joined in their wide type, integers wrap.
template <typename T>
using JoinType = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, Wide<T>>;

struct AddRows {
  template <typename T>
  using Type = typename JoinType<T>::type;
  template <typename V>
  static __device__ V join(V old, V update) {
    return old + update;
  }
};

}  // namespace zeroplan::kernels_cuda
