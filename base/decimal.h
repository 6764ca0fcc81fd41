#pragma once

namespace zeroplan {

// The shortest decimal number that rounds to `value` in single precision, as a double: files store 1e-5 as 9.99999974e-06f, and
// double-precision runs want the number that was meant. Doubles that no float equals come back as they are.
double meant_decimal(double value);

// The square or fourth root of a whole number n, 2 to 65,536, or its reciprocal, where rounded to single precision it is `value`; else
// `value`: exporters bake sqrt(2) and head_dim^-1/4 into files as floats.
double meant_root(double value);

}  // namespace zeroplan
