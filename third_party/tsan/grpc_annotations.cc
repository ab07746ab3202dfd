// Tells ThreadSanitizer what gRPC promises its callers; linked like
// absl_annotations.cc, and for the same reason: Debian's gRPC orders these with
// atomics that are not instrumented, while half of it, templates in headers, is
// compiled here and is.
#include <grpc/grpc.h>
#include <grpcpp/server.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>

#include "third_party/tsan/real.h"

using parasol::tsan::Real;

namespace {

void AcquireTag(const grpc_event& event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
}

}  // namespace

// What happened before a batch was started happened before its completion.
extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                      size_t nops, void* tag, void* reserved) {
  static auto* const real =
      Real<grpc_call_error(grpc_call*, const grpc_op*, size_t, void*, void*)>(
          "grpc_call_start_batch");
  __tsan_release(tag);
  return real(call, ops, nops, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                      gpr_timespec deadline, void* reserved) {
  static auto* const real =
      Real<grpc_event(grpc_completion_queue*, gpr_timespec, void*)>(
          "grpc_completion_queue_next");
  const grpc_event event = real(queue, deadline, reserved);
  AcquireTag(event);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const real =
      Real<grpc_event(grpc_completion_queue*, void*, gpr_timespec, void*)>(
          "grpc_completion_queue_pluck");
  const grpc_event event = real(queue, tag, deadline, reserved);
  AcquireTag(event);
  return event;
}

// Whoever makes a slice of his memory has done so before it is destroyed.
grpc_slice grpc_slice_new_with_user_data(void* data, size_t size,
                                         void (*destroy)(void*),
                                         void* user_data) {
  static auto* const real =
      Real<grpc_slice(void*, size_t, void (*)(void*), void*)>(
          "grpc_slice_new_with_user_data");
  struct Owner {
    void (*destroy)(void*);
    void* user_data;
  };
  auto* owner = new Owner{destroy, user_data};
  __tsan_release(owner);
  return real(
      data, size,
      [](void* last) {
        __tsan_acquire(last);
        const auto* owner = static_cast<Owner*>(last);
        owner->destroy(owner->user_data);
        delete owner;
      },
      owner);
}

}  // extern "C"

namespace grpc::internal {

// Called when the last reaction of a stream has returned; leads to OnDone().
// The reactions count down an atomic, most in headers and so in sight, the last
// maybe in the library.
void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static auto* const real = Real<void(ServerCallbackCall*, bool)>(
      "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&callbacks_outstanding_);
  real(this, inline_ondone);
}

}  // namespace grpc::internal

namespace grpc {

// Each stream gives back its reference after OnDone(); Shutdown() waits for
// all.
void Server::UnrefWithPossibleNotify() {
  static auto* const real =
      Real<void(Server*)>("_ZN4grpc6Server23UnrefWithPossibleNotifyEv");
  __tsan_release(this);
  real(this);
}

void Server::UnrefAndWaitLocked() {
  static auto* const real =
      Real<void(Server*)>("_ZN4grpc6Server18UnrefAndWaitLockedEv");
  real(this);
  __tsan_acquire(this);
}

}  // namespace grpc
