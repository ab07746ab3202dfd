#ifndef PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/exchange_outcome.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// A worker's side of the parameter plane: whole variables and rows of sparse
// tables in, the same out; how they are split over shards, encoded, packed into
// messages, kept in flight on several streams and resent is inside.
//
// Calls started by one thread reach each shard in their order, so that a pull
// sees the pushes started before it. Thread-safe.
class ParameterClient {
 public:
  struct Options {
    uint64_t worker_incarnation = 0;
    // Streams (each on its own connection) to one ps.
    int streams_per_shard = 2;
    // Payload of one message: a larger range is sent as several, small requests
    // that wait together travel together.
    size_t message_bytes = 1 << 20;
    // A shard that does not answer: it is named in the log every 10 s, and
    // after this the call ends with Unavailable.
    absl::Duration shard_timeout = absl::Minutes(5);
    // How elements travel, both ways; those of variables that are not trained
    // in float32.
    job::Encoding wire_encoding = job::FLOAT32;
    // Of the gradients of variables only this share of each range's elements is
    // sent, the largest ones; the rest is added to the variable's next
    // gradient. In (0, 1]. Variables that are not trained are sent whole.
    double push_share = 1;
    // With ps of the same machine (the same pid namespace and user) large
    // payloads go through memory that both see, 64 MiB at most per stream;
    // with others, through the socket.
    bool shared_memory = true;
  };

  // `variables` and `tables` are the names of the caller's variables and sparse
  // tables; their positions are the numbers used below. Does not connect yet.
  //   InvalidArgument  the placement lacks one or has gaps: names it; or an
  //                    option is out of its range.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Create(
      const wire::GetPlacementResponse& placement,
      std::vector<std::string> variables, std::vector<std::string> tables,
      const Options& options, Clock& clock, MetricsRegistry& metrics);
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

  // Rows of a sparse table: ids.size() x width, in the order of the ids, which
  // may be repeated; the shard sums the gradients of one row.
  struct RowTarget {
    size_t table = 0;
    absl::Span<const uint64_t> ids;
    absl::Span<float> values;
  };
  struct RowGradient {
    size_t table = 0;
    absl::Span<const uint64_t> ids;
    absl::Span<const float> values;
  };

  // Which gradient of synchronous training a push is.
  struct SyncStep {
    // Updates that the values had when the gradient was computed from them.
    int64_t step = 0;
    int replica = 0;
  };

  struct PullRequest {
    std::vector<Target> targets;
    std::vector<RowTarget> rows = {};
    // Wait until what is pulled has had so many updates (synchronous training).
    int64_t min_updates = 0;
  };
  struct PushRequest {
    std::vector<Gradient> gradients;
    // A table's gradient counts as one update of each of its shards, also where
    // it has no rows.
    std::vector<RowGradient> rows = {};
    std::optional<SyncStep> sync = std::nullopt;
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

    // Whether Wait() would return at once; waits for that up to `limit`.
    virtual bool WaitFor(absl::Duration limit) = 0;

    // After Wait() gave OK.
    using Outcome = ExchangeOutcome;
    virtual Outcome outcome() const = 0;
  };

  // Starts a pull. The memory of targets and ids must stay until Wait()
  // returns. Ordered after the pushes started before it: it sees them.
  virtual std::unique_ptr<Pending> Pull(PullRequest request) = 0;

  // Starts a push. The memory of gradients and ids must stay, unchanged, until
  // Wait() returns. Each shard applies it exactly once, however often a
  // connection is lost meanwhile.
  virtual std::unique_ptr<Pending> Push(PushRequest request) = 0;

  // The same for variables alone.
  std::unique_ptr<Pending> Pull(std::vector<Target> targets) {
    return Pull(PullRequest{.targets = std::move(targets)});
  }
  std::unique_ptr<Pending> Push(std::vector<Gradient> gradients) {
    return Push(PushRequest{.gradients = std::move(gradients)});
  }

  // Another placement of the same variables (a shard restarted or moved).
  // What is in flight to a shard that stays is not disturbed; to the others it
  // is resent, under the same sequence numbers.
  virtual absl::Status Update(const wire::GetPlacementResponse& placement) = 0;

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_
