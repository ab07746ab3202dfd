#ifndef PARASOL_PARAMETERS_CLIENT_SHARD_LINK_H_
#define PARASOL_PARAMETERS_CLIENT_SHARD_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/inspection/trace_recorder.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/rpc/message_memory.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_payloads.h"
#include "cluster/rpc/tensor_frame.h"
#include "cluster/trust/trust.h"
#include "parameters/client/exchange_message.h"
#include "parameters/client/parameter_client_metrics.h"
#include "parameters/client/payload_lane_retry.h"
#include "parameters/client/shard_outbox.h"
#include "parameters/client/shard_stream.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The streams to one shard and the operations in flight on them: an outbox with
// gRPC and a clock. An operation stays in the outbox until it is answered. If
// its stream ends, or the shard answers Unavailable, it waits for the next
// stream.
//
// Thread-safe. Call Stop() before the destructor.
class ShardLink : private ShardStream::Observer {
 public:
  using OperationPtr = ShardOutbox::OperationPtr;

  struct Options {
    std::string name;  // "ps/1"
    std::string address;
    size_t lanes = 1;
    ShardOutbox::Limits limits = {};
    // Time that the shard may take for any answer while it owes one. An
    // operation that it holds until other workers have sent theirs is not owed.
    absl::Duration timeout;
    uint64_t worker_incarnation = 0;
    // The layout and the ps process that the shard is expected in.
    uint64_t layout = 0;
    uint64_t ps_incarnation = 0;
    // wire::Shard.admission.
    std::string admission = {};
    // True if memory for large payloads is offered to a shard on the same
    // machine.
    bool shared_memory = true;
    // True if the shard is asked for a TCP connection for each stream, beside
    // gRPC's.
    bool tcp_lanes = true;
    // Time after which lanes that could not be opened are asked for again
    // (ParameterClient::Options).
    absl::Duration lane_retry = absl::Minutes(1);
    Callee callee = {};
    TraceRecorder* trace = nullptr;  // ParameterClient::Options
  };

  // `queue` is a CompletionThread's, and loops[i] serves lane i; all must
  // outlive the link. `attention` asks for a call of Attend() soon; it is
  // called with the link's lock held.
  ShardLink(const Options& options, grpc::CompletionQueue& queue,
            std::vector<SocketLoop*> loops, Clock& clock,
            const ParameterClientMetrics& metrics,
            std::function<void()> attention);
  ~ShardLink() override = default;

  // Sends the operations; the operations of one lane leave in the order given.
  // Does not block.
  void Send(absl::Span<const OperationPtr> operations) ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that the shard is at another address now, or in another process.
  // Operations in flight are sent again.
  void MoveTo(const wire::Shard& place) ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that the shard's ps is taking its variables: if operations wait, the
  // time that it has to answer them begins anew.
  void NoteLoading() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the time of the last NoteLoading() while operations waited.
  absl::Time loading_at() const ABSL_LOCKS_EXCLUDED(mu_);

  // Starts streams whose time has come, names a shard that is late in the log,
  // and fails operations that are out of time. Returns the latest time for the
  // next call.
  absl::Time Attend() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return options_.name; }
  bool HasUnanswered() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the time since which the shard owes an answer, if it could not be
  // reached, or has refused to work, since its last one; InfiniteFuture
  // otherwise.
  absl::Time away_since() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if operations wait for the shard, also those that wait for
  // other workers there, and it can't be reached.
  bool IsCut() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns what was waited for the shard, but for its position.
  TrainingParameters::PeerWait Wait() const ABSL_LOCKS_EXCLUDED(mu_);

  // Fails all operations with Cancelled, now and later. May be called twice.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The time at which a message was sent whose last new operation is `last_id`.
  struct Sent {
    uint64_t last_id = 0;
    absl::Time at;
  };

  struct Lane {
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<ShardStream> stream;  // null: none, see retry_at
    bool writing = false;
    // True if the shard has sent Unavailable: the stream is ending.
    bool refused = false;
    bool brings_answers = false;  // the stream has brought one
    // Number of streams that ended since the last good answer.
    int failures = 0;
    absl::Time retry_at = absl::InfinitePast();
    // The messages that had new operations, oldest first, from the one with the
    // oldest unanswered operation on.
    std::deque<Sent> sent = {};

    // Returns when operation `id`, which has been sent, was first sent.
    absl::Time FirstSent(uint64_t id) const;
  };

  // A message to be written after the lock is released.
  struct Departure {
    std::shared_ptr<ShardStream> stream;
    std::shared_ptr<const OutgoingMessage> message;
    uint64_t ps_incarnation = 0;
    uint64_t acknowledged = 0;
    // True if a following operation could hardly have joined the message.
    bool is_full = false;
  };
  using Departures = absl::InlinedVector<Departure, 4>;

  // A response as it was received; its header is in the memory that Parse() was
  // given.
  struct Response {
    const wire::ResponseHeader& header;
    ReceivedFrame frame;
    std::vector<PayloadView> payloads;
    SharedPayloads::Hold hold;  // keeps payloads from shared memory
  };

  // The operations that a response answers.
  struct Answered {
    // Operations in the order of the results; null: not in flight.
    std::vector<OperationPtr> operations;
    // Times at which the first push and the first pull of `operations` were
    // first sent.
    std::optional<absl::Time> push_sent;
    std::optional<absl::Time> pull_sent;
    // The operations, and when each was first sent, while a trace is wanted.
    std::vector<std::pair<OperationPtr, absl::Time>> sent = {};
  };

  void OnResponse(ShardStream& stream, const grpc::ByteBuffer& buffer) override
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<FrameTargets> FindReplyTargets(size_t lane,
                                               absl::string_view start,
                                               size_t frame_bytes) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritable(size_t lane) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnEnd(size_t lane, const grpc::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Offers what a shard at another address may take.
  void OfferAnew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has streams without a lane begin anew and ask for one: one of them when the
  // time has come, and the others once a lane works.
  void AttendLanes(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns the streams whose loops are to write, since what waits is worth
  // waking them: their copying goes on beside the caller, and lanes send beside
  // each other. Each is owed AskForWritable().
  std::vector<std::shared_ptr<ShardStream>> GiveTurns()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the next messages of all lanes that can be written to.
  Departures TakeDepartures() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<const OutgoingMessage> TakeMessage(size_t lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const Departures& departures) ABSL_LOCKS_EXCLUDED(mu_);
  // Lets the lane's next message leave after one that the transport has taken
  // at once: now, or on the thread of the lane's loop.
  void PassOn(const Departure& departure) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the streams that are due; the caller starts them after it has
  // released the lock.
  std::vector<std::shared_ptr<ShardStream>> MakeStreams(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static absl::StatusOr<Response> Parse(const grpc::ByteBuffer& buffer,
                                        SharedPayloads* shared,
                                        MessageMemory& memory);

  // Takes the operations that the results answer, up to the first refusal.
  Answered TakeAnswered(size_t lane, const wire::ResponseHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Refuse(Lane& lane, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishAnswered(const Answered& answered, const Response& response,
                      absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Shows the operations in the trace.
  void Trace(size_t lane, const Answered& answered, absl::Time now) const;
  // Updates the metrics.
  void Count(const Answered& answered, absl::Span<const absl::Status> statuses,
             absl::Time now);
  // Ends all streams; the operations that they carried are sent again on the
  // next ones.
  void DropStreams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Counts the time in which the shard owed an answer, up to now.
  void CountOwed(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsAway() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  const std::vector<SocketLoop*> loops_;  // index: the lane
  StreamOffers offers_;

  mutable absl::Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  uint64_t ps_incarnation_ ABSL_GUARDED_BY(mu_);
  std::string admission_ ABSL_GUARDED_BY(mu_);
  Callee callee_ ABSL_GUARDED_BY(mu_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mu_);
  ShardOutbox outbox_ ABSL_GUARDED_BY(mu_);
  // The time of the last good answer, or of the first operation that the shard
  // owed after it.
  absl::Time waiting_since_ ABSL_GUARDED_BY(mu_);
  // The time in which it owed an answer up to `owed_to_`, and whether it has
  // owed one since.
  absl::Duration owed_ ABSL_GUARDED_BY(mu_);
  absl::Time owed_to_ ABSL_GUARDED_BY(mu_);
  bool owes_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time loading_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  PayloadLaneRetry lane_retry_ ABSL_GUARDED_BY(mu_);
  absl::Time next_log_ ABSL_GUARDED_BY(mu_);
  bool named_ ABSL_GUARDED_BY(mu_) = false;
  // The reason why a stream last ended or was refused.
  std::string last_trouble_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// Returns who is at a shard's place: a ps that acts for a lost one has the keys
// of the ps in whose process it is.
Callee CalleeOf(const wire::Shard& place, std::shared_ptr<const Trust> trust);

// Returns what was waited for each shard; its position is its link's.
std::vector<TrainingParameters::PeerWait> WaitsOf(
    absl::Span<const std::unique_ptr<ShardLink>> links);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_SHARD_LINK_H_
