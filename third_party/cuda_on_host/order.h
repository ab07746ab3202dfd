#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_ORDER_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_ORDER_H_

#include <cstddef>
#include <memory>

// The orders of streams, as ThreadSanitizer is told of them with --config=tsan.
// To ThreadSanitizer each stream is a thread, so that it reports unordered work
// on the same memory, whatever the schedule. Without it these functions do
// nothing. The stand-in itself is not instrumented, and what it does for a
// stream is not looked at but between BeginWatch() and EndWatch(). All
// functions need the runtime's lock. ThreadSanitizer's interface, of which
// nothing is there without it.
extern "C" {
__attribute__((weak)) void __tsan_ignore_thread_begin();
__attribute__((weak)) void __tsan_ignore_thread_end();
}

namespace cuda_on_host {

// A point in the work of a stream or of a thread of the host. Null without
// ThreadSanitizer.
using Moment = std::shared_ptr<char>;

// Returns a point that nothing comes before yet.
Moment NewMoment();
// Puts all that the caller has done before `moment`.
void ComeBefore(const Moment& moment);
// Puts all that the caller does from now on behind what came before `moment`.
void ComeAfter(const Moment& moment);

// A thread that work belongs to: a stream, or the nodes of a graph that were
// captured on the stream `captured_on` and run on `stream`.
struct Track {
  const void* stream = nullptr;
  const void* captured_on = nullptr;
};

// Begins the track's thread, unless it is there. It comes after all that the
// caller has done, so this is done when work is enqueued, not when it is run.
void Open(const Track& track);

// Makes the caller its thread as long as it lasts.
class OnTrack {
 public:
  explicit OnTrack(const Track& track);
  ~OnTrack();
  OnTrack(const OnTrack&) = delete;
  OnTrack& operator=(const OnTrack&) = delete;

 private:
  void* caller_ = nullptr;
};

// Forgets the tracks of a stream that is destroyed.
void ForgetTracks(const void* stream);

// Two functions around code whose accesses count as the track's.
inline void BeginWatch() {
  if (__tsan_ignore_thread_end != nullptr) __tsan_ignore_thread_end();
}
inline void EndWatch() {
  if (__tsan_ignore_thread_begin != nullptr) __tsan_ignore_thread_begin();
}
// Two functions for accesses of code that is not instrumented.
void WatchRead(const void* data, size_t bytes);
void WatchWrite(const void* data, size_t bytes);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_ORDER_H_
