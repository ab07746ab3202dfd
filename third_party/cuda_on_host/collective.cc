#include "third_party/cuda_on_host/collective.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

float ToNumber(__nv_bfloat16 value) { return __bfloat162float(value); }
template <typename T>
T ToNumber(T value) {
  return value;
}

template <typename T>
using Number = decltype(ToNumber(T()));

template <typename T>
T FromNumber(Number<T> value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// Calls each(T()) for the C++ type of `type`; false if nothing computes in it.
template <typename Each>
bool WithType(ncclDataType_t type, const Each& each) {
  switch (type) {
    case ncclInt8:
      return each(int8_t()), true;
    case ncclUint8:
      return each(uint8_t()), true;
    case ncclInt32:
      return each(int32_t()), true;
    case ncclUint32:
      return each(uint32_t()), true;
    case ncclInt64:
      return each(int64_t()), true;
    case ncclUint64:
      return each(uint64_t()), true;
    case ncclFloat32:
      return each(float()), true;
    case ncclFloat64:
      return each(double()), true;
    case ncclBfloat16:
      return each(__nv_bfloat16()), true;
    case ncclFloat16:
      return false;
  }
  return false;
}

template <typename T>
Number<T> Combine(ncclRedOp_t reduce, Number<T> a, Number<T> b) {
  switch (reduce) {
    case ncclProd:
      return a * b;
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

// Element `at` of all ranks' buffers as one. The ranks come one after the other
// as in NCCL's ring, where each part of an array begins at another rank.
template <typename T>
T Reduced(const Shape& shape, const std::vector<Buffers>& buffers, size_t at,
          size_t size) {
  const size_t ranks = buffers.size();
  const size_t first = at * ranks / size;
  Number<T> result = 0;
  for (size_t i = 0; i < ranks; ++i) {
    const size_t rank = (first + i) % ranks;
    Number<T> value = ToNumber(static_cast<const T*>(buffers[rank].send)[at]);
    if (shape.factor) value = static_cast<Number<T>>(value * *shape.factor);
    result = i == 0 ? value : Combine<T>(shape.reduce, result, value);
  }
  if (shape.reduce == ncclAvg) result /= static_cast<Number<T>>(ranks);
  return FromNumber<T>(result);
}

// Reduces before it writes: buffers may be used in place.
template <typename T>
void Reduce(const Shape& shape, const std::vector<Buffers>& buffers) {
  const bool scatters = shape.operation == Operation::kReduceScatter;
  const size_t size = shape.count * (scatters ? buffers.size() : 1);
  std::vector<T> all(size);
  for (size_t i = 0; i < size; ++i)
    all[i] = Reduced<T>(shape, buffers, i, size);
  for (size_t rank = 0; rank < buffers.size(); ++rank) {
    const T* const from = all.data() + (scatters ? rank * shape.count : 0);
    std::copy_n(from, shape.count, static_cast<T*>(buffers[rank].receive));
  }
}

void Gather(const Shape& shape, const std::vector<Buffers>& buffers) {
  const size_t bytes = SentBytes(shape, static_cast<int>(buffers.size()));
  std::vector<char> all(bytes * buffers.size());
  for (size_t rank = 0; rank < buffers.size(); ++rank) {
    std::memcpy(all.data() + rank * bytes, buffers[rank].send, bytes);
  }
  for (const Buffers& rank : buffers) {
    std::memcpy(rank.receive, all.data(), all.size());
  }
}

void Broadcast(const Shape& shape, const std::vector<Buffers>& buffers) {
  const size_t bytes = ReceivedBytes(shape, static_cast<int>(buffers.size()));
  const void* const from = buffers[shape.root].send;
  for (const Buffers& rank : buffers) std::memmove(rank.receive, from, bytes);
}

}  // namespace

size_t BytesOf(ncclDataType_t type) {
  size_t bytes = type == ncclFloat16 ? 2 : 0;
  WithType(type, [&bytes](auto zero) { bytes = sizeof(zero); });
  return bytes;
}

bool IsReducible(ncclDataType_t type) {
  return WithType(type, [](auto) {});
}

double ReadScalar(const void* scalar, ncclDataType_t type) {
  double value = 0;
  WithType(type, [&](auto zero) {
    std::memcpy(&zero, scalar, sizeof(zero));
    value = static_cast<double>(ToNumber(zero));
  });
  return value;
}

size_t SentBytes(const Shape& shape, int ranks) {
  const size_t bytes = shape.count * BytesOf(shape.type);
  return shape.operation == Operation::kReduceScatter ? ranks * bytes : bytes;
}

size_t ReceivedBytes(const Shape& shape, int ranks) {
  const size_t bytes = shape.count * BytesOf(shape.type);
  return shape.operation == Operation::kAllGather ? ranks * bytes : bytes;
}

bool MayOverlapSo(const Shape& shape, const Buffers& buffers, int rank,
                  int ranks) {
  if (buffers.send == nullptr) return true;
  const char* const send = static_cast<const char*>(buffers.send);
  const char* const receive = static_cast<const char*>(buffers.receive);
  const size_t bytes = shape.count * BytesOf(shape.type);
  if (send + SentBytes(shape, ranks) <= receive) return true;
  if (receive + ReceivedBytes(shape, ranks) <= send) return true;
  switch (shape.operation) {
    case Operation::kAllGather:
      return send == receive + rank * bytes;
    case Operation::kReduceScatter:
      return receive == send + rank * bytes;
    default:
      return send == receive;
  }
}

void Perform(const Shape& shape, const std::vector<Buffers>& buffers) {
  switch (shape.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      WithType(shape.type,
               [&](auto zero) { Reduce<decltype(zero)>(shape, buffers); });
      return;
    case Operation::kAllGather:
      return Gather(shape, buffers);
    case Operation::kBroadcast:
      return Broadcast(shape, buffers);
  }
}

std::string Words(const Shape& shape) {
  const char* const names[] = {"ncclAllReduce", "ncclReduceScatter",
                               "ncclAllGather", "ncclBroadcast"};
  return std::string(names[static_cast<int>(shape.operation)]) + " of " +
         std::to_string(shape.count) + " elements";
}

}  // namespace cuda_on_host
