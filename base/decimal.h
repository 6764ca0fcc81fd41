#pragma once

namespace zeroplan {

// The shortest decimal number that rounds to `value` in single precision, as a double: files store 1e-5 as 9.99999974e-06f, and
// double-precision runs want the number that was meant. Doubles that no float equals come back as they are.
double meant_decimal(double value);

}  // namespace zeroplan
