#include "graph/ops/scalar_reference.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace zeroplan {

namespace {

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;            // Hendrycks and Gimpel, "Gaussian Error Linear Units"

constexpr int kArity[] = {
#define ZP_OP(name) 0,
#define ZP_UNARY_OP(name) 1,
#define ZP_BINARY_OP(name) 2,
#define ZP_TERNARY_OP(name) 3,
#include "graph/ops/ops.def"
#undef ZP_OP
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gelu(double x, int approximate) {
  if (approximate) return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}

double gelu_slope(double x, int approximate) {
  if (approximate) {
    const double t = std::tanh(kTanhScale * (x + kTanhCubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * kTanhCubic * x * x);
  }
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

// Sign of the divisor, as in Python; a zero has it too.
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double trigonometric(OpKind op, double x) {
  switch (op) {
    case OpKind::sin: return std::sin(x);
    case OpKind::cos: return std::cos(x);
    case OpKind::tan: return std::tan(x);
    case OpKind::asin: return std::asin(x);
    case OpKind::acos: return std::acos(x);
    case OpKind::atan: return std::atan(x);
    case OpKind::sinh: return std::sinh(x);
    case OpKind::cosh: return std::cosh(x);
    case OpKind::asinh: return std::asinh(x);
    case OpKind::acosh: return std::acosh(x);
    case OpKind::atanh: return std::atanh(x);
    default: break;
  }
  check(false, "not a unary operator");
  return 0;
}

double unary(OpKind op, double x, int approximate) {
  switch (op) {
    case OpKind::neg: return -x;
    case OpKind::abs: return std::fabs(x);
    case OpKind::sign: return std::isnan(x) ? x : (x > 0) - (x < 0);
    case OpKind::sqrt: return std::sqrt(x);
    case OpKind::reciprocal: return 1 / x;
    case OpKind::exp: return std::exp(x);
    case OpKind::log: return std::log(x);
    case OpKind::tanh: return std::tanh(x);
    case OpKind::sigmoid: return sigmoid(x);
    case OpKind::erf: return std::erf(x);
    case OpKind::relu: return x < 0 ? 0 : x;  // NaN stays NaN
    case OpKind::gelu: return gelu(x, approximate);
    case OpKind::silu: return x * sigmoid(x);
    case OpKind::logical_not: return x == 0;
    case OpKind::is_nan: return std::isnan(x);
    case OpKind::ceil: return std::ceil(x);
    case OpKind::floor: return std::floor(x);
    case OpKind::round: return std::nearbyint(x);  // half to even
    default: return trigonometric(op, x);
  }
}

// The *_grad ops: a = dy, b = x (tanh_grad, sigmoid_grad: y).
double gradient(OpKind op, double dy, double x, int approximate) {
  switch (op) {
    case OpKind::relu_grad: return x > 0 ? dy : 0;
    case OpKind::gelu_grad: return dy * gelu_slope(x, approximate);
    case OpKind::silu_grad: return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case OpKind::tanh_grad: return dy * (1 - x * x);
    case OpKind::sigmoid_grad: return dy * x * (1 - x);
    default: break;
  }
  check(false, "not a gradient operator");
  return 0;
}

double binary(OpKind op, double a, double b, int approximate) {
  switch (op) {
    case OpKind::add: return a + b;
    case OpKind::sub: return a - b;
    case OpKind::mul: return a * b;
    case OpKind::div: return a / b;
    case OpKind::pow: return std::pow(a, b);
    case OpKind::maximum: return std::isnan(a) || std::isnan(b) ? a + b : (a > b ? a : b);  // NaN wins
    case OpKind::minimum: return std::isnan(a) || std::isnan(b) ? a + b : (a < b ? a : b);
    case OpKind::equal: return a == b;
    case OpKind::less: return a < b;
    case OpKind::greater: return a > b;
    case OpKind::less_equal: return a <= b;
    case OpKind::greater_equal: return a >= b;
    case OpKind::logical_and: return a != 0 && b != 0;
    case OpKind::logical_or: return a != 0 || b != 0;
    case OpKind::modulo: return modulo(a, b);
    case OpKind::remainder: return std::fmod(a, b);
    default: return gradient(op, a, b, approximate);
  }
}

}  // namespace

double scalar_reference(OpKind op, double a, double b, double c, int approximate) {
  switch (elementwise_arity(op)) {
    case 1: return unary(op, a, approximate);
    case 2: return binary(op, a, b, approximate);
    case 3: return a != 0 ? b : c;
    default: break;
  }
  check(false, "not an elementwise operator");
  return 0;
}

int elementwise_arity(OpKind op) { return kArity[static_cast<size_t>(op)]; }

bool has_tanh_form(OpKind op) { return op == OpKind::gelu || op == OpKind::gelu_grad; }

bool takes_integers_alone(OpKind op) {
  switch (op) {
    case OpKind::shift_left:
    case OpKind::shift_right:
    case OpKind::bit_and:
    case OpKind::bit_or:
    case OpKind::bit_xor: return true;
    default: return false;
  }
}

bool gives_boolean(OpKind op) {
  switch (op) {
    case OpKind::logical_not:
    case OpKind::is_nan:
    case OpKind::equal:
    case OpKind::less:
    case OpKind::greater:
    case OpKind::less_equal:
    case OpKind::greater_equal:
    case OpKind::logical_and:
    case OpKind::logical_or: return true;
    default: return false;
  }
}

}  // namespace zeroplan
