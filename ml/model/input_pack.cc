#include "ml/model/input_pack.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "ml/model/memory/grow.h"

namespace parasol {
namespace {

// As arrays of a CUDA device begin.
constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

size_t InputPack::Add() {
  arrays_.emplace_back();
  return arrays_.size() - 1;
}

void InputPack::SetBytes(size_t array, const void* from, size_t bytes) {
  arrays_[array].from = from;
  arrays_[array].bytes = bytes;
}

absl::Status InputPack::Send() {
  if (device_.shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(Reserve());
  size_t end = 0;
  for (const Part& part : arrays_) {
    if (part.bytes == 0) continue;
    // Pinned memory, because from pageable memory the driver would copy the
    // same bytes the same way, but keep this thread waiting.
    std::memcpy(host_.data() + part.offset, part.from, part.bytes);
    end = std::max(end, part.offset + part.bytes);
  }
  if (end == 0) return absl::OkStatus();
  return device_.Copy(Device::Stream::kCopyIn,
                      absl::MakeConstSpan(host_.data(), end),
                      on_device_.data());
}

// An array that outgrows its room goes behind all others, which stay. When
// there is no room there, all are placed anew, without gaps.
absl::Status InputPack::Reserve() {
  for (Part& part : arrays_) {
    if (part.bytes <= part.capacity) continue;
    // By at least half, so that varying sizes soon change no address.
    part.capacity = Aligned(std::max(part.bytes, part.capacity * 3 / 2));
    part.offset = end_;
    end_ += part.capacity;
  }
  if (end_ <= on_device_.size()) return absl::OkStatus();
  end_ = 0;
  for (Part& part : arrays_) {
    part.offset = end_;
    end_ += part.capacity;
  }
  RETURN_IF_ERROR(GrowOnHost(device_, end_, host_));
  return Grow(device_, end_, on_device_);
}

const void* InputPack::Address(size_t array) const {
  const Part& part = arrays_[array];
  if (part.bytes == 0) return nullptr;
  return device_.shares_host_memory() ? part.from
                                      : on_device_.data() + part.offset;
}

}  // namespace parasol
