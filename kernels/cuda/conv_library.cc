#include <limits>

#include "kernels/cuda/context.h"
#include "kernels/cuda/conv_paths.h"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int64_t kMost = std::numeric_limits<int>::max();  // elements of a tensor, and every size

// Is the axis one of the library's, which pads both ends alike?
bool takes_axis(const WindowAxis& a) {
  const int64_t alike = a.in + 2 * a.before - a.extent();
  return a.in > 0 && a.before >= 0 && alike >= 0 && alike / a.stride + 1 == a.out && a.in + 2 * a.before <= kMost && a.extent() <= kMost;
}

bool takes(const KernelArgs& args, const ConvShape& s) {
  const Windows& w = s.windows;
  if (w.first == 0 || !takes_axis(w.axis[1]) || !takes_axis(w.axis[2])) return false;
  for (const TensorView& view : {args.inputs[0], args.inputs[1], args.outputs[0]})
    if (view.dtype != args.inputs[0].dtype || view.elements() > kMost) return false;
  return true;
}

ConvProblem::Axis axis_of(const WindowAxis& a) {
  const auto number = [](int64_t x) { return static_cast<int>(x); };
  return {number(a.in), number(a.out), number(a.kernel), number(a.stride), number(a.dilation), number(a.before)};
}

ConvProblem problem_of(const KernelArgs& args, const ConvShape& s, OpKind op) {
  ConvProblem p;
  p.pass = op;
  p.dtype = args.inputs[0].dtype;
  p.batch = static_cast<int>(s.batch);
  p.groups = static_cast<int>(s.groups);
  p.in_channels = static_cast<int>(s.in_channels);
  p.out_channels = static_cast<int>(s.out_channels);
  for (int i = 0; i < 2; ++i) p.axis[i] = axis_of(s.windows.axis[i + 1]);
  p.workspace_bytes = args.workspace_bytes;
  return p;
}

}  // namespace

bool library_takes(const KernelArgs& args, const ConvShape& s, OpKind op) {
  return takes(args, s) && context_of(args).convolutions().takes(problem_of(args, s, op));
}

bool convolve_library(const KernelArgs& args, const ConvShape& s, OpKind op) {
  if (!takes(args, s)) return false;
  const ConvProblem p = problem_of(args, s, op);
  const void *a = args.inputs[0].data, *b = args.inputs[1].data, *result = args.outputs[0].data;
  Convolutions& library = context_of(args).convolutions();
  if (op == OpKind::conv) return library.run(p, a, b, result, args.workspace);
  if (op == OpKind::conv_grad_input) return library.run(p, result, b, a, args.workspace);
  return library.run(p, a, result, b, args.workspace);
}

}  // namespace zeroplan::kernels_cuda
