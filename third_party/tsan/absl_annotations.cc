// Tells ThreadSanitizer what absl::Mutex and its kind order; linked into every
// binary by
// --config=tsan and by nothing else.
//
// Debian's Abseil is not instrumented: ThreadSanitizer sees neither that
// Mutex::Lock() comes after the Unlock() before it, nor why the two exclude
// each other, and would report everything that a Mutex guards as a race. The
// functions below stand in front of the library's own of the same names, and
// annotate each call. They annotate for gRPC too, which uses the same library.
#include <atomic>
#include <cstdint>

#include "absl/base/config.h"
#include "absl/status/internal/status_internal.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "third_party/tsan/real.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// Symbols are mangled with the inline namespace of Debian's Abseil.
using parasol::tsan::Real;

// The mutex that the library is at work on in this thread.
thread_local Mutex* mutex_in_call = nullptr;

class ScopedCall {
 public:
  explicit ScopedCall(Mutex* mutex) : outer_(mutex_in_call) {
    mutex_in_call = mutex;
  }
  ~ScopedCall() { mutex_in_call = outer_; }

 private:
  Mutex* const outer_;
};

// Calls `real`, which returns with `mutex` locked.
template <typename Result, typename... Parameters, typename... Arguments>
Result Lock(Mutex* mutex, Result (*real)(Parameters...),
            const Arguments&... arguments) {
  struct Acquire {
    Mutex* const mutex;
    ~Acquire() { __tsan_acquire(mutex); }
  } acquire{mutex};
  ScopedCall call(mutex);
  return real(arguments...);
}

// Calls `real`, which unlocks `mutex` and returns with it locked again.
template <typename Result, typename... Parameters, typename... Arguments>
Result Relock(Mutex* mutex, Result (*real)(Parameters...),
              const Arguments&... arguments) {
  __tsan_release(mutex);
  return Lock(mutex, real, arguments...);
}

void Unlock(Mutex* mutex, void (*real)(Mutex*)) {
  __tsan_release(mutex);
  ScopedCall call(mutex);
  real(mutex);
}

bool TryLock(Mutex* mutex, bool (*real)(Mutex*)) {
  const bool locked = real(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

// Where the inline HasBeenNotified(), which is instrumented, reads: behind the
// mutex.
void* NotifiedFlag(const Notification* notification) {
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) +
         sizeof(Mutex);
}

bool AcquireIf(bool notified, const Notification* notification) {
  if (notified) __tsan_acquire(NotifiedFlag(notification));
  return notified;
}

}  // namespace

void Mutex::Lock() {
  static auto* const real = Real<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  absl::Lock(this, real, this);
}

bool Mutex::TryLock() {
  static auto* const real =
      Real<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  return absl::TryLock(this, real);
}

void Mutex::Unlock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  absl::Unlock(this, real);
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  __tsan_release(this);  // other threads evaluate the condition
  absl::Lock(this, real, this, condition);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  __tsan_release(this);  // other threads evaluate the condition
  return absl::Lock(this, real, this, condition, timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_"
      "4TimeE");
  __tsan_release(this);  // other threads evaluate the condition
  return absl::Lock(this, real, this, condition, deadline);
}

void Mutex::ReaderLock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  absl::Lock(this, real, this);
}

bool Mutex::ReaderTryLock() {
  static auto* const real =
      Real<bool(Mutex*)>("_ZN4absl7debian35Mutex13ReaderTryLockEv");
  return absl::TryLock(this, real);
}

void Mutex::ReaderUnlock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  absl::Unlock(this, real);
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex14ReaderLockWhenERKNS0_9ConditionE");
  __tsan_release(this);  // other threads evaluate the condition
  absl::Lock(this, real, this, condition);
}

bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition,
                                      Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex25ReaderLockWhenWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  __tsan_release(this);  // other threads evaluate the condition
  return absl::Lock(this, real, this, condition, timeout);
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition,
                                       Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_"
      "4TimeE");
  __tsan_release(this);  // other threads evaluate the condition
  return absl::Lock(this, real, this, condition, deadline);
}

void Mutex::Await(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  absl::Relock(this, real, this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  return absl::Relock(this, real, this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return absl::Relock(this, real, this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const real = Real<void(CondVar*, Mutex*)>(
      "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  absl::Relock(mutex, real, this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const real = Real<bool(CondVar*, Mutex*, Duration)>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return absl::Relock(mutex, real, this, mutex, timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const real = Real<bool(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return absl::Relock(mutex, real, this, mutex, deadline);
}

// A thread that unlocks a mutex evaluates the conditions of those who wait for
// it, and holds it until one is true: what it reads comes after the last Unlock
// and before the next Lock.
bool Condition::Eval() const {
  static auto* const real =
      Real<bool(const Condition*)>("_ZNK4absl7debian39Condition4EvalEv");
  Mutex* const mutex = mutex_in_call;
  if (mutex == nullptr) return real(this);
  __tsan_acquire(mutex);
  const bool holds = real(this);
  __tsan_release(mutex);
  return holds;
}

void Notification::Notify() {
  static auto* const real =
      Real<void(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(NotifiedFlag(this));
  real(this);
}

void Notification::WaitForNotification() const {
  static auto* const real = Real<void(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  real(this);
  AcquireIf(true, this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const real = Real<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_"
      "8DurationE");
  return AcquireIf(real(this, timeout), this);
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const real = Real<bool(const Notification*, Time)>(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_"
      "4TimeE");
  return AcquireIf(real(this, deadline), this);
}

// As the library's, but in sight: headers count the copies of a Status up, and
// the library down. What the last one frees may be gRPC's own, which it handed
// from thread to thread out of sight.
void Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* shared = RepToPointer(rep);
  if (shared->ref.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  delete shared;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

ABSL_NAMESPACE_END
}  // namespace absl
