#include "ml/device/cpu_device.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

CpuDevice::CpuDevice(int threads)
    : Device(Kind::kCpu, absl::StrCat("cpu (", threads,
                                      threads == 1 ? " thread)" : " threads)")),
      threads_(threads),
      blas_(threads) {}

absl::Status CpuDevice::Order(Stream earlier, Stream later) {
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Device::Event>> CpuDevice::NewEvent() {
  return std::make_unique<Event>();
}

absl::Status CpuDevice::Record(Stream stream, Event& event) {
  return absl::OkStatus();
}

absl::Status CpuDevice::Follow(Event& event, Stream later) {
  return absl::OkStatus();
}

absl::Status CpuDevice::Wait(Event& event) { return absl::OkStatus(); }

absl::Status CpuDevice::Synchronize() { return absl::OkStatus(); }

absl::StatusOr<void*> CpuDevice::Allocate(size_t bytes, bool on_host) {
  // aligned_alloc() wants whole multiples, and may answer 0 bytes with null.
  const size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name(), " has no ", bytes, " bytes left"));
  }
  std::memset(data, 0, rounded);
  return data;
}

void CpuDevice::Free(void* data, bool on_host) { std::free(data); }

absl::Status CpuDevice::CopyBytes(Stream stream, const void* from, void* to,
                                  size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace parasol
