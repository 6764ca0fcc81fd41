#pragma once
// Places along axes, and linear numbers of elements, for the decoders that pick and scatter.
#include <vector>

#include "graph/onnx/arithmetic.h"

namespace zeroplan {

// x at places that are known at import: a slice where they are evenly spaced, a broadcast where each comes the same number of times.
ValueId take(FoldingBuilder& build, ValueId x, int64_t axis, const std::vector<int64_t>& places);
// One place along the axis, which goes.
ValueId take_one(FoldingBuilder& build, ValueId x, int64_t axis, int64_t place);

// Elements that indices along one axis name, as rows of a matrix: data seen as [batch, rows], the indices as [batch, count].
struct ElementPlaces {
  int64_t batch = 1, rows = 1, count = 1;
  ValueId indices = kNone;
};
// As GatherElements and ScatterElements mean it: `indices` has the rank of the data and at most its size on every other axis.
ElementPlaces element_places(FoldingBuilder& build, const Shape& data, ValueId indices, int64_t axis);

// indices […, q] name places on the axes of `shape`, q of them; the result […] numbers the elements of `shape`.
ValueId linear_indices(FoldingBuilder& build, ValueId indices, const Shape& shape);

}  // namespace zeroplan
