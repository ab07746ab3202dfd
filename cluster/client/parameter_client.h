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

// A worker's side of the parameter plane. It pushes and pulls whole variables
// and rows of sparse tables. It splits them over shards, encodes them, packs
// them into messages, keeps these in flight on several streams and resends
// them.
//
// A pull sees the pushes that the same thread has started before it, whether or
// not they are answered. Some of the rows that it pulls may also have a push
// that was started after it. Thread-safe.
class ParameterClient {
 public:
  // Number of gradient elements that are worth a push of their own while the
  // backward pass goes on: with 256 KiB a message's fixed cost no longer
  // matters.
  static constexpr size_t kPackElements = 65536;

  struct Options {
    uint64_t worker_incarnation = 0;
    // Number of streams to one ps, each on its own connection.
    int streams_per_shard = 2;
    // Bytes of payload of one message. A larger range is sent as several
    // messages; small requests that wait together travel together.
    size_t message_bytes = 1 << 20;
    // Time after which a call that waits for a shard ends with Unavailable.
    // Until then the log names the shard every 10 s.
    absl::Duration shard_timeout = absl::Minutes(5);
    // The encoding of elements on the wire, both ways. Variables that are not
    // trained always travel in float32.
    job::Encoding wire_encoding = job::FLOAT32;
    // The share of each range's gradient elements that is sent, the largest
    // ones, in (0, 1]. The rest is added to the variable's next gradient.
    // Variables that are not trained are sent whole.
    double push_share = 1;
    // True if large payloads to ps of the same machine (the same pid namespace
    // and user) may go through shared memory, at most 64 MiB per stream. Other
    // payloads go through the socket.
    bool shared_memory = true;
    // True if the messages of each stream travel on a TCP connection of their
    // own, where the ps offers that and it can be reached; otherwise in gRPC.
    bool tcp_lanes = true;
    // Time after which a ps whose lanes could not be opened is asked for them
    // again; twice as long after each failure, 16 times at most.
    absl::Duration lane_retry = absl::Minutes(1);
  };

  // `variables` and `tables` are the names of the caller's variables and sparse
  // tables; their positions are the numbers used below. Does not connect yet.
  //   InvalidArgument  the placement lacks a variable or table or has gaps, and
  //                    the message names it; or an option is out of its range.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Create(
      const wire::GetPlacementResponse& placement,
      std::vector<std::string> variables, std::vector<std::string> tables,
      const Options& options, Clock& clock, MetricsRegistry& metrics);
  virtual ~ParameterClient() = default;

  // The values or gradients of one variable: float32, all its elements.
  struct Target {
    size_t variable = 0;
    absl::Span<float> values;
  };
  struct Gradient {
    size_t variable = 0;
    absl::Span<const float> values;
  };

  // Rows of a sparse table: ids.size() x width, in the order of the ids. Ids
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

  // The gradient of synchronous training that a push is.
  struct SyncStep {
    // Number of updates that the values had when the gradient was computed from
    // them.
    int64_t step = 0;
    int replica = 0;
  };

  // A replica's part of a step whose gradients of variables stay in the memory
  // of its device, where a client adds them that knows the place.
  struct DevicePart {
    // False if the replica has no examples in the step: its gradients are 0,
    // whatever is in that memory.
    bool has_examples = true;
    // Factor of the gradients.
    float weight = 1;
    // Number of the device, among those of this process.
    int device = 0;
  };

  struct PullRequest {
    std::vector<Target> targets;
    std::vector<RowTarget> rows = {};
    // Number of updates that the pulled chunks and tables must have had; the
    // pull waits for them (synchronous training). Each gives the oldest such
    // values that it has.
    int64_t min_updates = 0;
  };
  struct PushRequest {
    std::vector<Gradient> gradients;
    // The gradients of rows. A table's gradient counts as one update of each of
    // its shards, even if it has no rows there.
    std::vector<RowGradient> rows = {};
    std::optional<SyncStep> sync = std::nullopt;
    // Set if the gradients of variables are on a device: `gradients` is empty
    // then, and `rows` has those of rows.
    std::optional<DevicePart> on_device = std::nullopt;
  };

  // A push or pull in progress. Wait for it, once.
  class Pending {
   public:
    virtual ~Pending() = default;
    // Blocks until every shard has answered.
    //   Unavailable         a shard did not answer within shard_timeout; the
    //                       message names it. It may or may not have applied a
    //                       push, and the other shards have: don't repeat the
    //                       call, start again as another incarnation. (A shard
    //                       that restarts in time is resent to without an
    //                       error.)
    //   FailedPrecondition  the shard holds another run or layout; a new
    //                       placement tells which.
    //   InvalidArgument     our request was wrong: a bug or another version.
    //   Cancelled           Stop() was called.
    virtual absl::Status Wait() = 0;

    // Blocks for up to `limit`; returns true if Wait() would return at once.
    virtual bool WaitFor(absl::Duration limit) = 0;

    // The outcome; valid after Wait() has returned OK.
    using Outcome = ExchangeOutcome;
    virtual Outcome outcome() const = 0;
  };

  // Starts a pull. The memory of targets and ids must stay until Wait()
  // returns. The pull sees the pushes started before it.
  virtual std::unique_ptr<Pending> Pull(PullRequest request) = 0;

  // Says whose gradients the next pass on the device of `part` computes, which
  // then are that part of a push: they may leave before the push, while the
  // pass goes on. Does not begin the pass. Nothing for most clients.
  virtual void Expect(const SyncStep& step, const DevicePart& part) {}

  // Starts a push. The memory of gradients and ids must stay, unchanged, until
  // Wait() returns. Each shard applies it exactly once, however often a
  // connection is lost meanwhile.
  virtual std::unique_ptr<Pending> Push(PushRequest request) = 0;

  // A push, and the pull behind it. Wait for both.
  struct PushAndPull {
    std::unique_ptr<Pending> push;
    std::unique_ptr<Pending> pull;
  };
  // Starts `push` and then `pull`, as Push() and Pull() do. In asynchronous
  // training what both name is one operation, a push-pull: one request, whose
  // answer has the values behind the update. It is acknowledged when the values
  // are there. Both name a variable, or rows of a table if their ids are the
  // same memory.
  virtual PushAndPull PushPull(PushRequest push, PullRequest pull);

  // Start a pull or push of variables alone.
  std::unique_ptr<Pending> Pull(std::vector<Target> targets) {
    return Pull(PullRequest{.targets = std::move(targets)});
  }
  std::unique_ptr<Pending> Push(std::vector<Gradient> gradients) {
    return Push(PushRequest{.gradients = std::move(gradients)});
  }

  // Takes another placement of the same variables (a shard restarted or moved).
  // Requests in flight to a shard that stays are not disturbed; requests to the
  // others are resent, under the same sequence numbers.
  //   InvalidArgument  the placement has another layout: this client can't go
  //                    on.
  virtual absl::Status Update(const wire::GetPlacementResponse& placement) = 0;

  // Returns how many times Update() has named another process for a shard. A
  // new process may lack what the one before it has acknowledged.
  virtual int64_t moves() const { return 0; }

  // Notes that the chief knows why the shards at these positions of the
  // placement don't answer: their ps are taking the variables. Their time to
  // answer (Options::shard_timeout) begins anew. Ignores unknown positions.
  virtual void ShardsAreLoading(absl::Span<const int> shards) {}

  // Returns the time of the last ShardsAreLoading() that named a shard which
  // owed an answer; InfinitePast if there was none.
  virtual absl::Time last_loading() const { return absl::InfinitePast(); }

  // Returns the names of the shards that have not answered everything.
  virtual std::vector<std::string> Unanswered() const { return {}; }

  // Returns true if a shard has owed an answer for `limit`, and could not be
  // reached, or has refused to work, since its last one.
  virtual bool IsAnyAway(absl::Duration limit) const { return false; }

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_PARAMETER_CLIENT_H_
