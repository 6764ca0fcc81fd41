// What each collective computes. Sums run in rank order with one rounding at
// the end; a real ring may round differently.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "nccl/team.h"

namespace cuda_host::nccl {

namespace {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::AllGather: return "ncclAllGather";
    case Kind::ReduceScatter: return "ncclReduceScatter";
    case Kind::AllReduce: return "ncclAllReduce";
    case Kind::Broadcast: return "ncclBroadcast";
    case Kind::Reduce: return "ncclReduce";
    case Kind::AlltoAll: return "ncclAlltoAll";
    case Kind::Gather: return "ncclGather";
    case Kind::Scatter: return "ncclScatter";
    case Kind::Send: return "ncclSend";
    case Kind::Recv: return "ncclRecv";
  }
  return "?";
}

const char* type_name(ncclDataType_t type) {
  constexpr const char* names[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",   "uint64",
                                   "float16", "float32", "float64", "bfloat16", "fp8e4m3", "fp8e5m2"};
  return type >= 0 && type < ncclNumTypes ? names[type] : "unknown type";
}

float to_wide(__half x) { return __half2float(x); }
float to_wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
T to_wide(T x) {
  return x;
}

void to_narrow(float x, __half& out) { out = __float2half(x); }
void to_narrow(float x, __nv_bfloat16& out) { out = __float2bfloat16(x); }
template <class T>
void to_narrow(T x, T& out) {
  out = x;
}

template <class Wide>
Wide combine(Wide a, Wide b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd: return static_cast<Wide>(a * b);
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return static_cast<Wide>(a + b);
  }
}

// out[i] = the reduction over all ranks of send[offset + i]; may alias an input.
template <class T>
void reduce_as(const std::vector<Call>& calls, std::size_t offset, T* out, std::size_t count, ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i) {
    auto total = to_wide(static_cast<const T*>(calls[0].send)[offset + i]);
    for (std::size_t r = 1; r < calls.size(); ++r) {
      total = combine(total, to_wide(static_cast<const T*>(calls[r].send)[offset + i]), op);
    }
    if (op == ncclAvg) total = static_cast<decltype(total)>(total / static_cast<decltype(total)>(calls.size()));
    to_narrow(total, out[i]);
  }
}

void reduce(const std::vector<Call>& calls, std::size_t offset, void* out, std::size_t count) {
  const ncclRedOp_t op = calls[0].op;
  switch (calls[0].type) {
    case ncclInt8: return reduce_as(calls, offset, static_cast<std::int8_t*>(out), count, op);
    case ncclUint8: return reduce_as(calls, offset, static_cast<std::uint8_t*>(out), count, op);
    case ncclInt32: return reduce_as(calls, offset, static_cast<std::int32_t*>(out), count, op);
    case ncclUint32: return reduce_as(calls, offset, static_cast<std::uint32_t*>(out), count, op);
    case ncclInt64: return reduce_as(calls, offset, static_cast<std::int64_t*>(out), count, op);
    case ncclUint64: return reduce_as(calls, offset, static_cast<std::uint64_t*>(out), count, op);
    case ncclFloat16: return reduce_as(calls, offset, static_cast<__half*>(out), count, op);
    case ncclBfloat16: return reduce_as(calls, offset, static_cast<__nv_bfloat16*>(out), count, op);
    case ncclFloat64: return reduce_as(calls, offset, static_cast<double*>(out), count, op);
    default: return reduce_as(calls, offset, static_cast<float*>(out), count, op);
  }
}

char* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }
const char* at(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }

// Each rank's input may lie inside an output, so inputs are copied first.
std::vector<std::vector<char>> copy_inputs(const std::vector<Call>& calls, std::size_t bytes) {
  std::vector<std::vector<char>> inputs;
  for (const Call& c : calls) inputs.emplace_back(at(c.send, 0), at(c.send, bytes));
  return inputs;
}

void all_reduce(const std::vector<Call>& calls, std::size_t bytes) {
  std::vector<char> total(bytes);
  reduce(calls, 0, total.data(), calls[0].count);
  for (const Call& c : calls) std::memcpy(c.recv, total.data(), bytes);
}

void all_to_all(const std::vector<Call>& calls, std::size_t bytes) {
  const auto inputs = copy_inputs(calls, bytes * calls.size());
  for (std::size_t to = 0; to < calls.size(); ++to) {
    for (std::size_t from = 0; from < calls.size(); ++from) {
      std::memcpy(at(calls[to].recv, from * bytes), inputs[from].data() + to * bytes, bytes);
    }
  }
}

}  // namespace

std::string describe(const Call& c) {
  std::string text = std::string(kind_name(c.kind)) + "(count " + std::to_string(c.count) + ", " + type_name(c.type);
  if (c.kind == Kind::ReduceScatter || c.kind == Kind::AllReduce || c.kind == Kind::Reduce) {
    text += ", op " + std::to_string(c.op);
  }
  if (c.kind == Kind::Send || c.kind == Kind::Recv) text += ", peer " + std::to_string(c.peer);
  if (c.kind == Kind::Broadcast || c.kind == Kind::Reduce || c.kind == Kind::Gather || c.kind == Kind::Scatter) {
    text += ", root " + std::to_string(c.peer);
  }
  return text + ")";
}

std::size_t type_size(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

void run_collective(const std::vector<Call>& calls) {
  const Call& first = calls[0];
  const std::size_t bytes = first.count * type_size(first.type);
  const auto root = static_cast<std::size_t>(first.peer);
  switch (first.kind) {
    case Kind::AllGather: {
      const auto inputs = copy_inputs(calls, bytes);
      for (const Call& c : calls) {
        for (std::size_t r = 0; r < calls.size(); ++r) std::memcpy(at(c.recv, r * bytes), inputs[r].data(), bytes);
      }
      break;
    }
    case Kind::ReduceScatter:
      // Output r overwrites, in place, only the input part that it alone needs.
      for (std::size_t r = 0; r < calls.size(); ++r) reduce(calls, r * first.count, calls[r].recv, first.count);
      break;
    case Kind::AllReduce: all_reduce(calls, bytes); break;
    case Kind::Broadcast: {
      for (const Call& c : calls) std::memmove(c.recv, calls[root].send, bytes);
      break;
    }
    case Kind::Reduce: reduce(calls, 0, calls[root].recv, first.count); break;
    case Kind::AlltoAll: all_to_all(calls, bytes); break;
    case Kind::Gather:
      for (std::size_t r = 0; r < calls.size(); ++r) std::memmove(at(calls[root].recv, r * bytes), calls[r].send, bytes);
      break;
    case Kind::Scatter:
      for (std::size_t r = 0; r < calls.size(); ++r) std::memmove(calls[r].recv, at(calls[root].send, r * bytes), bytes);
      break;
    case Kind::Send:
    case Kind::Recv: break;
  }
}

}  // namespace cuda_host::nccl
