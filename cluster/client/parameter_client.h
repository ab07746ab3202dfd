#ifndef PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/chief.pb.h"

namespace parasol {

// A worker's side of the parameter plane: whole variables in, whole variables
// out; how they are split over shards, chunked into messages, kept in flight on
// several streams and resent is inside.
class ParameterClient {
 public:
  struct Options {
    uint64_t worker_incarnation = 0;
    // Streams (each on its own connection) to one ps.
    int streams_per_shard = 2;
    // Payload of one message; a larger range is sent as several.
    size_t message_bytes = 1 << 20;
    // A shard that does not answer: it is named in the log every 10 s, and
    // after this the call ends with Unavailable.
    absl::Duration shard_timeout = absl::Minutes(5);
  };

  // `variables` are the names of the caller's variables; their position is the
  // number used below. Does not connect yet.
  //   InvalidArgument  the placement lacks one or has gaps: names it.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Create(
      const wire::GetPlacementResponse& placement,
      std::vector<std::string> variables, const Options& options, Clock& clock,
      MetricsRegistry& metrics);
  virtual ~ParameterClient() = default;

  // Values or gradients of one variable, float32, all its elements.
  struct Target {
    size_t variable = 0;
    absl::Span<float> values;
  };
  struct Gradient {
    size_t variable = 0;
    absl::Span<const float> values;
  };

  // What Pull and Push give: wait for it, once.
  class Pending {
   public:
    virtual ~Pending() = default;
    // Blocks until every shard has answered.
    //   Unavailable         a shard did not answer within shard_timeout: names
    //                       it. Whether it has applied a push is not known and
    //                       the other shards have: don't repeat the call, start
    //                       again as another incarnation. (A shard that
    //                       restarts in time is resent to without an error.)
    //   FailedPrecondition  the shard holds another run: a new placement will
    //                       tell which.
    //   InvalidArgument     our request was wrong: a bug or another version.
    //   Cancelled           Stop() was called.
    virtual absl::Status Wait() = 0;
  };

  // Starts a pull. The memory of `targets` must stay until Wait() returns.
  // Ordered after the pushes started before it: it sees them.
  virtual std::unique_ptr<Pending> Pull(std::vector<Target> targets) = 0;

  // Starts a push: sent from the memory of `gradients`, which must stay,
  // unchanged, until Wait() returns. Each shard applies it exactly once,
  // however often a connection is lost meanwhile.
  virtual std::unique_ptr<Pending> Push(std::vector<Gradient> gradients) = 0;

  // Another placement of the same variables (a shard restarted or moved).
  // What is in flight to a shard that stays is not disturbed; to the others it
  // is resent, under the same sequence numbers.
  virtual absl::Status Update(const wire::GetPlacementResponse& placement) = 0;

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_
