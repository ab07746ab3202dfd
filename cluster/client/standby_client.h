#ifndef PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/trust/trust.h"
#include "proto/parameter.pb.h"

namespace parasol {

// A stream of a ps to the standby of its shard. Its messages travel on a
// payload lane (cluster/payload_lane), or in the call if none can be opened.
// One thread may write at a time; Cancel() may be called from any.
class StandbyCall {
 public:
  // Called on a thread of the call, one call at a time.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnAnswer(const wire::FollowResponse& answer) = 0;
    // Called once, last, if something was written: nothing comes any more.
    virtual void OnEnd() = 0;
  };

  // Ends the call, if it has not ended.
  virtual ~StandbyCall() = default;
  // Writes messages, one after the other. Blocks while the other end does not
  // read. False: the call has ended.
  virtual bool Write(absl::Span<const FollowMessage> messages) = 0;
  virtual void Cancel() = 0;
  // Waits until the call has ended, and returns why. The observer is not called
  // any more. Call it once, when no thread writes.
  virtual absl::Status Finish() = 0;
};

// A ps's calls to the ps that has its shard's standby, or is to have it. Each
// call has a connection of its own. Thread-safe.
class StandbyClient {
 public:
  virtual ~StandbyClient() = default;
  static std::unique_ptr<StandbyClient> Create(
      std::shared_ptr<const Trust> trust);

  // Begins a stream to the ps; never null. `observer` must outlive it.
  virtual std::unique_ptr<StandbyCall> Follow(
      const wire::StandbyPlace& place, StandbyCall::Observer& observer) = 0;
  // Gives `take` the state, piece by piece.
  //   NotFound, FailedPrecondition  the service's (proto/parameter.proto).
  //   Unavailable, DeadlineExceeded the ps does not answer for `deadline`, or
  //                                 the state is cut off.
  // and errors of `take`.
  virtual absl::Status TakeStandby(
      const wire::StandbyPlace& place, const wire::TakeStandbyRequest& request,
      absl::Duration deadline,
      absl::FunctionRef<absl::Status(const wire::StandbyState&)> take) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_
