#ifndef PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_
#define PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/completion.h"
#include "cluster/client/exchange_outcome.h"
#include "cluster/client/shard_stream.h"
#include "proto/parameter.pb.h"

namespace parasol {

// Of one ParameterClient, over all its shards.
struct ParameterClientMetrics {
  explicit ParameterClientMetrics(MetricsRegistry& registry);

  Counter push_bytes;
  Counter pull_bytes;
  Counter resent_requests;
  Histogram push_latency;
  Histogram pull_latency;
  // Those that have not answered for so long that the log names them.
  Gauge shards_waiting;
};

// One message to a shard. Its id and sequence are given by the link.
struct ShardRequest {
  size_t stream = 0;
  std::string run_id;
  wire::Operation operation;
  // One for each of the operation's ranges: push or pull.
  std::vector<absl::Span<const float>> gradients;
  std::vector<absl::Span<float>> targets;
  std::shared_ptr<Completion> completion;

  // The link's own.
  absl::Time started;
  bool was_sent = false;
};

// The streams to one shard and what is in flight on them. A request stays here
// until it is answered: a stream that ends, or a shard that says that it is
// Unavailable, makes it wait for the next stream, in the old order and under
// the same sequence.
//
// Thread-safe. Stop() before the destructor.
class ShardLink : private ShardStream::Observer {
 public:
  struct Options {
    std::string name;  // "ps/1"
    std::string address;
    size_t streams = 1;
    // How long the shard may take for any answer while requests wait.
    absl::Duration timeout;
    uint64_t worker_incarnation = 0;
  };

  // `queue` is a CompletionThread's and outlives the link. `attention` asks for
  // a call of Attend() soon. It is called with the link's lock held.
  ShardLink(const Options& options, grpc::CompletionQueue& queue, Clock& clock,
            const ParameterClientMetrics& metrics,
            std::function<void()> attention);
  ~ShardLink() override = default;

  void Send(std::vector<ShardRequest> requests) ABSL_LOCKS_EXCLUDED(mu_);

  // The shard is at `address` now, a new process perhaps: what is in flight is
  // sent again.
  void MoveTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  // Starts streams whose time has come, names a shard that is late, fails what
  // is out of time. Returns when to be called again at the latest.
  absl::Time Attend() ABSL_LOCKS_EXCLUDED(mu_);

  // Fails everything with Cancelled, now and later. May be called twice.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using RequestPtr = std::shared_ptr<ShardRequest>;

  struct Lane {
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<ShardStream> stream;  // null: none, see retry_at
    bool writing = false;
    std::deque<RequestPtr> waiting;
    // By request id, and so in the order in which they were sent.
    std::map<uint64_t, RequestPtr> in_flight;
    // Streams that ended since the last good answer.
    int failures = 0;
    absl::Time retry_at = absl::InfinitePast();
  };

  void OnReply(size_t lane, const grpc::ByteBuffer& buffer) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritable(size_t lane) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnEnd(size_t lane, const grpc::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);

  // Writes the lane's next request, if there is one that may go.
  void Pump(size_t lane) ABSL_LOCKS_EXCLUDED(mu_);
  void PumpAll() ABSL_LOCKS_EXCLUDED(mu_);
  RequestPtr NextToSend(Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Streams to start, outside of the lock.
  std::vector<std::shared_ptr<ShardStream>> MakeStreams(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Enqueue(ShardRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The request that `id` answers, no longer in flight; null if there is none.
  RequestPtr TakeAnswered(size_t lane, uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  void Refuse(size_t lane, const std::string& why) ABSL_LOCKS_EXCLUDED(mu_);
  void Finish(const ShardRequest& request, const absl::Status& status,
              const ExchangeOutcome& outcome) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<RequestPtr> TakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends all streams; what they carried is sent again on the next ones.
  void DropStreams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void NameIfLate(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetNamed(bool named) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t Unanswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Peer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Trouble() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool NoStreams() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  grpc::CompletionQueue& queue_;
  Clock& clock_;
  ParameterClientMetrics metrics_;
  const std::function<void()> attention_;

  absl::Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t last_sequence_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<uint64_t> unanswered_sequences_ ABSL_GUARDED_BY(mu_);
  // The last good answer, or the first request after an idle time.
  absl::Time waiting_since_ ABSL_GUARDED_BY(mu_);
  absl::Time next_log_ ABSL_GUARDED_BY(mu_);
  bool named_ ABSL_GUARDED_BY(mu_) = false;
  // Why a stream last ended or was refused.
  std::string last_trouble_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_
