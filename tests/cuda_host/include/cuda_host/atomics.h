// Device atomics on top of the compiler's, so that ThreadSanitizer sees them.
// Stronger than CUDA's relaxed ones: "write, __threadfence(), atomicAdd" must not
// look like a race, at the price of hiding a forgotten fence.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "cuda_host/simt.h"

namespace cuda_host::simt {

template <class T>
concept AtomicInteger = std::same_as<T, int> || std::same_as<T, unsigned> || std::same_as<T, unsigned long long> ||
    std::same_as<T, long long> || std::same_as<T, unsigned long>;

template <std::size_t Size>
using Bits = std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>;

// A compare-and-swap loop over the bit pattern serves every type and operation.
template <class T, class Change>
T atomic_update(T* address, Change change) {
  using Word = Bits<sizeof(T)>;
  spin_tick();
  auto* word = reinterpret_cast<Word*>(address);
  Word seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const T old = std::bit_cast<T>(seen);
    const Word wanted = std::bit_cast<Word>(static_cast<T>(change(old)));
    if (__atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      return old;
    }
  }
}

}  // namespace cuda_host::simt

// The second parameter does not take part in deduction, as with nvcc's
// overloads: atomicAdd(&counter, 1) works for an unsigned counter.
template <cuda_host::simt::AtomicInteger T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  cuda_host::simt::spin_tick();
  return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}
inline float atomicAdd(float* address, float value) {
  return cuda_host::simt::atomic_update(address, [=](float old) { return old + value; });
}
inline double atomicAdd(double* address, double value) {
  return cuda_host::simt::atomic_update(address, [=](double old) { return old + value; });
}
inline __half atomicAdd(__half* address, __half value) {
  return cuda_host::simt::atomic_update(address, [=](__half old) { return old + value; });
}
inline __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return cuda_host::simt::atomic_update(address, [=](__nv_bfloat16 old) { return old + value; });
}
template <cuda_host::simt::AtomicInteger T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  cuda_host::simt::spin_tick();
  return __atomic_fetch_sub(address, value, __ATOMIC_ACQ_REL);
}
template <cuda_host::simt::AtomicInteger T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T old) { return old > value ? old : value; });
}
template <cuda_host::simt::AtomicInteger T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T old) { return old < value ? old : value; });
}
template <cuda_host::simt::AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T old) { return old & value; });
}
template <cuda_host::simt::AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T old) { return old | value; });
}
template <cuda_host::simt::AtomicInteger T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T old) { return old ^ value; });
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return cuda_host::simt::atomic_update(address, [=](unsigned old) { return old >= limit ? 0U : old + 1U; });
}
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return cuda_host::simt::atomic_update(address, [=](unsigned old) { return old == 0U || old > limit ? limit : old - 1U; });
}
template <class T>
requires cuda_host::simt::AtomicInteger<T> || std::same_as<T, float> T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_host::simt::atomic_update(address, [=](T) { return value; });
}
template <class T>
requires cuda_host::simt::AtomicInteger<T> || std::same_as<T, unsigned short> T atomicCAS(T* address, std::type_identity_t<T> compare,
                                                                                          std::type_identity_t<T> value) {
  cuda_host::simt::spin_tick();
  __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return compare;
}

// One thread order serves block, device and system scope alike.
template <class T, class V>
T atomicAdd_block(T* address, V value) {
  return atomicAdd(address, static_cast<T>(value));
}
template <class T, class V>
T atomicAdd_system(T* address, V value) {
  return atomicAdd(address, static_cast<T>(value));
}
