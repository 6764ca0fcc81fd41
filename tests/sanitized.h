#pragma once
// Is the program built with a sanitizer? It is some twenty times slower then, and its memory is not what the plan counts.

namespace zeroplan {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace zeroplan
