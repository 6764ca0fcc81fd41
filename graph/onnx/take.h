#pragma once
// Places along axes, and linear numbers of elements, for the decoders that pick and scatter.
#include <vector>

#include "graph/onnx/terms.h"

namespace zeroplan {

// x at places that are known at import: a slice where they are evenly spaced, a broadcast where each comes the same number of times.
Term take(Term x, int64_t axis, const std::vector<int64_t>& places);

// Elements that indices along one axis name, as rows of a matrix: data seen as [batch, rows], the indices as [batch, count].
struct ElementPlaces {
  int64_t batch, rows, count;
  Term indices;
};
// As GatherElements and ScatterElements mean it: `indices` has the rank of the data and at most its size on every other axis.
ElementPlaces element_places(const Shape& data, Term indices, int64_t axis);

// indices […, q] name places on the axes of `shape`, q of them; the result […] numbers the elements of `shape`.
Term linear_indices(Term indices, const Shape& shape);

}  // namespace zeroplan
