#ifndef PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_H_
#define PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_H_

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
#include "cluster/inspection/trace_recorder.h"
#include "cluster/trust/trust.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The parameters that ps have. The client splits variables and rows of sparse
// tables over shards, encodes them, packs them into messages, keeps these in
// flight on several streams and resends them: each shard applies a push exactly
// once, however often a connection is lost meanwhile. Thread-safe.
//
// A pull gives of each chunk and table the oldest values that are new enough.
// In asynchronous training what a push-pull names twice is one request, whose
// answer has the values behind the update; its push is acknowledged when they
// are there. It may name a variable twice, or rows of a table if their ids are
// the same memory.
//
// Errors of a wait are, besides the ones of TrainingParameters::Pending,
//   Unavailable         a shard did not answer within shard_timeout; the other
//                       shards have. (A shard that restarts in time is resent
//                       to without an error.)
//   FailedPrecondition  the shard holds another run or layout; a new placement
//                       tells which.
//   InvalidArgument     our request was wrong: a bug or another version.
class ParameterClient : public TrainingParameters {
 public:
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
    // The worker's keys; null: it has none, and neither have the ps.
    std::shared_ptr<const Trust> trust = nullptr;
    // Shows each operation from its sending to its answer; must outlive the
    // client. Null: nowhere.
    TraceRecorder* trace = nullptr;
  };

  // `variables` and `tables` are the names of the caller's variables and sparse
  // tables; their positions are the numbers used below. Does not connect yet.
  //   InvalidArgument  the placement lacks a variable or table or has gaps, and
  //                    the message names it; or an option is out of its range.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Create(
      const wire::GetPlacementResponse& placement,
      std::vector<std::string> variables, std::vector<std::string> tables,
      const Options& options, Clock& clock, MetricsRegistry& metrics);

  // Takes another placement of the same variables (a shard restarted or moved).
  // Requests in flight to a shard that stays are not disturbed; requests to the
  // others are resent, under the same sequence numbers. Awaited::moves counts
  // the shards that have another process.
  //   InvalidArgument  the placement has another layout: this client can't go
  //                    on.
  virtual absl::Status Update(const wire::GetPlacementResponse& placement) = 0;

  // Notes that the chief knows why the shards at these positions of the
  // placement don't answer: their ps are taking the variables. The time to
  // answer (Options::shard_timeout) of the ones that owe an answer begins anew,
  // and Awaited::last_loading is now. Ignores unknown positions.
  virtual void ShardsAreLoading(absl::Span<const int> shards) = 0;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_PARAMETER_CLIENT_H_
