#pragma once
// Whole numbers of every integer type, and what an operator must give for them, bit by bit.
#include <string>
#include <vector>

#include "tests/decoders/one_node.h"

namespace zeroplan {

using Whole = __int128;  // holds the results of all types; a tensor cuts them to its own, as NumPy does
using Numbers = std::vector<Whole>;

constexpr DType kIntegers[] = {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};

Whole lowest(DType dtype);
Whole highest(DType dtype);
inline bool has_sign(DType dtype) { return lowest(dtype) < 0; }
HostTensor tensor(DType dtype, const Shape& shape, const Numbers& numbers);
// The ends of the type and some numbers between, none of them 0.
Numbers edges(DType dtype);
std::string name_of(const char* op, DType dtype);
// By the reference evaluators and by the kernels of a plan.
void expect_outputs(const OneNode& node, const std::vector<HostTensor>& wanted, const std::string& what);

}  // namespace zeroplan
