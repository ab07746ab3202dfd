#ifndef PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/trust/trust.h"
#include "proto/parameter.pb.h"

namespace parasol {

// A stream of a ps to the standby of its shard. One thread may write and
// another one read at a time; Cancel() may be called from any.
class StandbyCall {
 public:
  // Ends the call, if it has not ended.
  virtual ~StandbyCall() = default;
  // Blocks while the other end does not read. False: the call has ended.
  virtual bool Write(const wire::FollowRequest& message) = 0;
  // Blocks until there is an answer. False: the call has ended.
  virtual bool Read(wire::FollowResponse& answer) = 0;
  virtual void Cancel() = 0;
  // Returns why the call has ended. Call it once, when no thread writes or
  // reads.
  virtual absl::Status Finish() = 0;
};

// A ps's calls to the ps that has its shard's standby, or is to have it. Each
// call has a connection of its own. Thread-safe.
class StandbyClient {
 public:
  virtual ~StandbyClient() = default;
  static std::unique_ptr<StandbyClient> Create(
      std::shared_ptr<const Trust> trust);

  // Begins a stream to the ps; never null.
  virtual std::unique_ptr<StandbyCall> Follow(
      const wire::StandbyPlace& place) = 0;
  // Gives `take` the state's bytes, piece by piece.
  //   NotFound, FailedPrecondition  the service's (proto/parameter.proto).
  //   Unavailable, DeadlineExceeded the ps does not answer for `deadline`, or
  //                                 the state is cut off.
  // and errors of `take`.
  virtual absl::Status TakeStandby(
      const wire::StandbyPlace& place, const wire::TakeStandbyRequest& request,
      absl::Duration deadline,
      absl::FunctionRef<absl::Status(absl::string_view)> take) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_STANDBY_CLIENT_H_
