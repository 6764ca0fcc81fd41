// Convolutions of every rank, padding and dilation as products over columns.
#include "graph/ops/cuda_conv_columns.h"

#include "base/dtype.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/conv_paths.h"
#include "kernels/cuda/strided_copy.h"

namespace zeroplan::kernels_cuda {

namespace {

// A matrix of a batch of them: `image` and `group` apart.
struct Matrices {
  std::byte* data;
  DType dtype;
  bool transposed;
  int64_t ld, image, group;  // elements
  void* at(int64_t i, int64_t g) const { return data + (i * image + g * group) * dtype_bytes(dtype); }
};

Matrices matrices(const TensorView& view, bool transposed, int64_t ld, int64_t image, int64_t group, int64_t offset = 0) {
  return {static_cast<std::byte*>(view.data) + offset * dtype_bytes(view.dtype), view.dtype, transposed, ld, image, group};
}

int alignment_of(const void* address) { return product_alignment(reinterpret_cast<uintptr_t>(address)); }

class Columns {
 public:
  // `list`: takes the products, in place of any work.
  Columns(const KernelArgs& args, const ConvShape& shape, OpKind op, const ProductTaker* list)
      : args_(args),
        s_(shape),
        dtype_(args.inputs[0].dtype),
        wide_(wide_dtype(dtype_)),
        cut_(conv_columns(shape, op, dtype_bytes(dtype_), dtype_bytes(wide_))),
        list_(list) {}

  // y[image, group] = w[group] · columns[image, group]
  void forward() {
    const TensorView &x = args_.inputs[0], &w = args_.inputs[1], &y = args_.outputs[0];
    each_chunk([&](const ColumnChunk& c) {
      const int64_t matrix = rows() * c.points;
      if (!list_) fill_columns(args_, s_, c, {s_.groups * matrix, c.points}, x, columns());
      multiply(c.images, s_.out_channels, c.points, rows(), matrices(w, false, rows(), 0, s_.out_channels * rows()),
               {columns(), dtype_, false, c.points, s_.groups * matrix, matrix},
               matrices(y, false, points(), s_.groups * results(), results(), c.image * s_.groups * results() + c.point));
    });
  }

  // columns[image, group] = w[group]ᵀ · dy[image, group], and dx adds them up.
  void grad_input() {
    const TensorView &dy = args_.inputs[0], &w = args_.inputs[1], &dx = args_.outputs[0];
    for (int64_t image = 0; image < s_.batch; image += cut_.images)
      for (int64_t channel = 0; channel < s_.in_channels; channel += cut_.part) {
        const ColumnChunk c = {image,   std::min(cut_.images, s_.batch - image),      0, points(),
                               channel, std::min(cut_.part, s_.in_channels - channel)};
        const int64_t taken = c.channels * taps();
        multiply(c.images, taken, points(), s_.out_channels, matrices(w, true, rows(), 0, s_.out_channels * rows(), channel * taps()),
                 matrices(dy, false, points(), s_.groups * results(), results(), image * s_.groups * results()),
                 {columns(), wide_, false, points(), s_.groups * taken * points(), taken * points()});
        if (!list_) fold_columns(args_, s_, c, columns(), dx);
      }
  }

  // dw[group] = Σ dy[image, group] · columns[image, group]ᵀ over images and points, which lie side by side.
  void grad_weight() {
    const TensorView &x = args_.inputs[0], &dw = args_.outputs[0];
    const bool direct = cut_.whole || dw.dtype == wide_;  // the first product goes where the sum is wanted
    void* const sum = direct ? dw.data : part(cut_.columns_bytes + cut_.dy_bytes);
    void* const addend = part(cut_.columns_bytes + cut_.dy_bytes + cut_.sum_bytes);
    const int64_t weights = s_.out_channels * rows();
    each_chunk([&](const ColumnChunk& c) {
      const int64_t length = c.images * c.points;
      const bool first = c.image == 0 && c.point == 0;
      if (!list_) fill_columns(args_, s_, c, {c.points, length}, x, columns());
      const Matrices target = {
          static_cast<std::byte*>(first ? sum : addend), first && direct ? dw.dtype : wide_, false, rows(), 0, weights};
      multiply(1, s_.out_channels, rows(), length, gradients(c), {columns(), dtype_, true, length, 0, rows() * length}, target);
      if (!first && !list_) add_to(args_, s_.groups * weights, wide_, addend, sum);
    });
    if (!direct && !list_) narrow_to(args_, dw.dtype, sum, dw);
  }

 private:
  int64_t taps() const { return s_.windows.taps(); }
  int64_t points() const { return s_.windows.out_points(); }
  int64_t rows() const { return s_.in_channels * taps(); }
  int64_t results() const { return s_.out_channels * points(); }  // of a group of an image
  std::byte* part(int64_t offset) const { return static_cast<std::byte*>(args_.workspace) + offset; }
  std::byte* columns() const { return part(0); }

  template <typename Fn>
  void each_chunk(const Fn& fn) {
    for (int64_t image = 0; image < s_.batch; image += cut_.images)
      for (int64_t point = 0; point < points(); point += cut_.part)
        fn(ColumnChunk{image, std::min(cut_.images, s_.batch - image), point, std::min(cut_.part, points() - point), 0, s_.in_channels});
  }

  // dy of the chunk as [groups, out_channels, images · points]: a copy where there are several images.
  Matrices gradients(const ColumnChunk& c) {
    const TensorView& dy = args_.inputs[1];
    const int64_t all = s_.groups * s_.out_channels, first = c.image * all * points() + c.point;
    if (c.images == 1) return matrices(dy, false, points(), 0, results(), first);
    const int64_t length = c.images * points();
    TensorView from = make_view(static_cast<std::byte*>(dy.data) + first * dtype_bytes(dtype_), dtype_, {c.images, all, points()}),
               to = make_view(part(cut_.columns_bytes), dtype_, {c.images, all, points()}, {points(), length, 1});
    if (!list_) copy_strided(args_, from, to);
    return {static_cast<std::byte*>(to.data), dtype_, false, length, 0, s_.out_channels * length};
  }

  // y[m, n] = a[m, k] · b[k, n] for each image and group, the larger number of them at once.
  void multiply(int64_t images, int64_t m, int64_t n, int64_t k, const Matrices& a, const Matrices& b, const Matrices& y) {
    const bool by_image = images >= s_.groups;
    const auto form = [&](const Matrices& x) { return ProductMatrix{x.transposed, x.ld, by_image ? x.image : x.group, 0}; };
    ProductProblem p = {m, n, k, by_image ? images : s_.groups, form(a), form(b), form(y), dtype_, y.dtype};
    p.workspace_bytes = cut_.product_bytes;
    for (int64_t i = 0; i < (by_image ? s_.groups : images); ++i) {
      const int64_t image = by_image ? 0 : i, group = by_image ? i : 0;
      const ProductData data = {a.at(image, group), b.at(image, group), nullptr, nullptr, y.at(image, group)};
      p.a.alignment = alignment_of(data.a);
      p.b.alignment = alignment_of(data.b);
      p.y.alignment = alignment_of(data.y);
      if (list_)
        (*list_)(p);
      else
        context_of(args_).products().run(p, data, part(cut_.total() - cut_.product_bytes), context_of(args_).stream());
    }
  }

  const KernelArgs& args_;
  const ConvShape& s_;
  const DType dtype_, wide_;
  const ConvColumns cut_;
  const ProductTaker* const list_;
};

void convolve(Columns columns, OpKind op) {
  if (op == OpKind::conv) return columns.forward();
  if (op == OpKind::conv_grad_input) return columns.grad_input();
  columns.grad_weight();
}

}  // namespace

void convolve_columns(const KernelArgs& args, const ConvShape& shape, OpKind op) { convolve({args, shape, op, nullptr}, op); }
void list_column_products(const KernelArgs& args, const ConvShape& shape, OpKind op, const ProductTaker& take) {
  convolve({args, shape, op, &take}, op);
}

}  // namespace zeroplan::kernels_cuda
