#include "third_party/cuda_on_host/order.h"

#include <map>
#include <utility>

// More of ThreadSanitizer's interface.
extern "C" {
#define CUDA_ON_HOST_IF_LINKED __attribute__((weak))
CUDA_ON_HOST_IF_LINKED void __tsan_acquire(void* address);
CUDA_ON_HOST_IF_LINKED void __tsan_release(void* address);
CUDA_ON_HOST_IF_LINKED void* __tsan_get_current_fiber();
CUDA_ON_HOST_IF_LINKED void* __tsan_create_fiber(unsigned flags);
CUDA_ON_HOST_IF_LINKED void __tsan_destroy_fiber(void* fiber);
CUDA_ON_HOST_IF_LINKED void __tsan_switch_to_fiber(void* fiber, unsigned flags);
CUDA_ON_HOST_IF_LINKED void __tsan_read_range(void* address, size_t bytes);
CUDA_ON_HOST_IF_LINKED void __tsan_write_range(void* address, size_t bytes);
}

namespace cuda_on_host {
namespace {

// A switch alone is no order.
constexpr unsigned kNoOrder = 1;

bool IsLinked() { return __tsan_create_fiber != nullptr; }

// ThreadSanitizer's threads, by their tracks.
std::map<std::pair<const void*, const void*>, void*>& Threads() {
  static auto* const threads =
      new std::map<std::pair<const void*, const void*>, void*>;
  return *threads;
}

void* ThreadOf(const Track& track) {
  void*& thread = Threads()[{track.stream, track.captured_on}];
  if (thread == nullptr) thread = __tsan_create_fiber(0);
  return thread;
}

}  // namespace

Moment NewMoment() { return IsLinked() ? std::make_shared<char>() : nullptr; }

void ComeBefore(const Moment& moment) {
  if (moment != nullptr) __tsan_release(moment.get());
}

void ComeAfter(const Moment& moment) {
  if (moment != nullptr) __tsan_acquire(moment.get());
}

void Open(const Track& track) {
  if (IsLinked()) ThreadOf(track);
}

OnTrack::OnTrack(const Track& track) {
  if (!IsLinked()) return;
  caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(ThreadOf(track), kNoOrder);
  EndWatch();
}

OnTrack::~OnTrack() {
  if (!IsLinked()) return;
  BeginWatch();
  __tsan_switch_to_fiber(caller_, kNoOrder);
}

void ForgetTracks(const void* stream) {
  std::erase_if(Threads(), [stream](const auto& entry) {
    const auto& [track, thread] = entry;
    if (track.first != stream && track.second != stream) return false;
    __tsan_destroy_fiber(thread);
    return true;
  });
}

void WatchRead(const void* data, size_t bytes) {
  if (!IsLinked()) return;
  BeginWatch();
  __tsan_read_range(const_cast<void*>(data), bytes);
  EndWatch();
}

void WatchWrite(const void* data, size_t bytes) {
  if (!IsLinked()) return;
  BeginWatch();
  __tsan_write_range(const_cast<void*>(data), bytes);
  EndWatch();
}

}  // namespace cuda_on_host
