#ifndef PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_
#define PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/exchange_message.h"
#include "cluster/client/shard_outbox.h"
#include "cluster/client/shard_stream.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_payloads.h"
#include "cluster/rpc/tensor_frame.h"
#include "proto/parameter.pb.h"

namespace parasol {

// Of one ParameterClient, over all its shards.
struct ParameterClientMetrics {
  explicit ParameterClientMetrics(MetricsRegistry& registry);

  Counter push_bytes;
  Counter pull_bytes;
  Counter resent_requests;
  // Of the first push, and the first pull, of each response.
  Histogram push_latency;
  Histogram pull_latency;
  // Those that have not answered for so long that the log names them.
  Gauge shards_waiting;
};

// The streams to one shard and what is in flight on them: an outbox with gRPC
// and a clock. A request stays in the outbox until it is answered: a stream
// that ends, or a shard that says that it is Unavailable, makes it wait for the
// next stream.
//
// Thread-safe. Stop() before the destructor.
class ShardLink : private ShardStream::Observer {
 public:
  using RequestPtr = ShardOutbox::RequestPtr;

  struct Options {
    std::string name;  // "ps/1"
    std::string address;
    size_t streams = 1;
    ShardOutbox::Limits limits = {};
    // How long the shard may take for any answer while it owes one. What it
    // holds until other workers have sent theirs, it does not owe.
    absl::Duration timeout;
    uint64_t worker_incarnation = 0;
    // Offer memory to a shard on the same machine, for large payloads.
    bool shared_memory = true;
  };

  // `queue` is a CompletionThread's and outlives the link. `attention` asks for
  // a call of Attend() soon. It is called with the link's lock held.
  ShardLink(const Options& options, grpc::CompletionQueue& queue, Clock& clock,
            const ParameterClientMetrics& metrics,
            std::function<void()> attention);
  ~ShardLink() override = default;

  // In this order; those of one lane leave in it. Nothing is waited for.
  void Send(absl::Span<const RequestPtr> requests) ABSL_LOCKS_EXCLUDED(mu_);

  // The shard is at `address` now, a new process perhaps: what is in flight is
  // sent again.
  void MoveTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  // Starts streams whose time has come, names a shard that is late, fails what
  // is out of time. Returns when to be called again at the latest.
  absl::Time Attend() ABSL_LOCKS_EXCLUDED(mu_);

  // Fails everything with Cancelled, now and later. May be called twice.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Lane {
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<ShardStream> stream;  // null: none, see retry_at
    bool writing = false;
    // The shard has sent Unavailable: the stream is ending.
    bool refused = false;
    // Streams that ended since the last good answer.
    int failures = 0;
    absl::Time retry_at = absl::InfinitePast();
  };

  // A message to be written, outside of the lock.
  struct Departure {
    std::shared_ptr<ShardStream> stream;
    std::shared_ptr<const OutgoingMessage> message;
  };
  using Departures = absl::InlinedVector<Departure, 4>;

  // A reply as it was received.
  struct Reply {
    wire::ResponseHeader header;
    ReceivedFrame frame;
    std::vector<PayloadView> payloads;
    SharedPayloads::Hold hold;  // of those that came through shared memory
  };

  // In the order of a response's results; null: not in flight.
  using Answered = std::vector<RequestPtr>;

  void OnReply(ShardStream& stream, const grpc::ByteBuffer& buffer) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritable(size_t lane) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnEnd(size_t lane, const grpc::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);

  // The next messages of all lanes that can be written to.
  Departures TakeDepartures() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<const OutgoingMessage> TakeMessage(size_t lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const Departures& departures) ABSL_LOCKS_EXCLUDED(mu_);
  // Streams to start, outside of the lock.
  std::vector<std::shared_ptr<ShardStream>> MakeStreams(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static absl::StatusOr<Reply> Parse(const grpc::ByteBuffer& buffer,
                                     SharedPayloads* shared);

  // The requests that the results answer, up to the first refusal.
  Answered TakeAnswered(size_t lane, const wire::ResponseHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Refuse(Lane& lane, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishAnswered(const Answered& answered, const Reply& reply,
                      absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // In the metrics.
  void Count(const Answered& answered, absl::Span<const absl::Status> statuses,
             absl::Time now);
  // Ends all streams; what they carried is sent again on the next ones.
  void DropStreams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void NameIfLate(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetNamed(bool named) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Peer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Trouble() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool NoStreams() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  grpc::CompletionQueue& queue_;
  Clock& clock_;
  ParameterClientMetrics metrics_;
  const std::function<void()> attention_;
  // The shard may be on this machine.
  std::atomic<bool> offers_memory_;

  absl::Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mu_);
  ShardOutbox outbox_ ABSL_GUARDED_BY(mu_);
  // The last good answer, or the first request that the shard then owed.
  absl::Time waiting_since_ ABSL_GUARDED_BY(mu_);
  absl::Time next_log_ ABSL_GUARDED_BY(mu_);
  bool named_ ABSL_GUARDED_BY(mu_) = false;
  // Why a stream last ended or was refused.
  std::string last_trouble_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SHARD_LINK_H_
