#ifndef PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_
#define PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "parameters/client/shard_operation.h"
#include "parameters/client/shard_outbox.h"
#include "proto/parameter.pb.h"
#include "ps/shard/dedup_window.h"
#include "ps/shard/parameter_shard.h"
#include "storage/shard_index.h"

namespace parasol {

// Simulates workers that push to one shard over a bad network, as one
// deterministic run of a random schedule. The workers' outboxes and the shard's
// table are real; the streams between them are simulated. No threads, no
// sockets, no time.
//
// The following may happen at any moment and in any order. A stream ends, and
// its messages are lost or reach the shard later, even after they were sent
// again on the next stream and answered there. Answers are lost, are delayed,
// and overtake each other. The shard is replaced by one that was restored from
// its snapshot; or, if it has a journal, it is lost with all that it has, and
// replaced by one that was restored from an older snapshot and the journal, of
// which the last record may be cut off.
//
// All gradients are small integers and the optimizer subtracts them, so sums in
// float32 are exact.
class PushSimulation {
 public:
  // Ways to break the system on purpose, to test that the simulation notices.
  enum class Mutant {
    kNone,
    // The shard takes each delivery for a new push.
    kFreshIdentity,
    // A restored shard does not know which pushes its predecessor has applied.
    kForgetsWhenRestored,
    // A push-pull is answered with the values before it.
    kPullsAhead,
    // A shard that was lost is restored without its journal.
    kIgnoresTheJournal,
    // A snapshot names a place in the journal behind what it lacks.
    kNamesALaterPlace,
  };
  struct Options {
    uint64_t seed = 0;
    size_t workers = 3;
    size_t lanes = 2;
    // Number of pushes of each worker.
    size_t pushes = 40;
    // Largest number of requests in one message.
    size_t message_operations = 4;
    // Expected number of these events in a thousand steps.
    size_t stream_ends = 30;
    size_t restores = 5;
    // Directory of the shard's journal; empty: it has none. With one it is lost
    // instead of restored, and there are as many snapshots.
    std::string journal_directory = {};
    // True if lane 0 of each worker carries nothing but its first message until
    // all other lanes have nothing left to do: the outbox must then stop at the
    // window.
    bool starve_first_lane = false;
    Mutant mutant = Mutant::kNone;
  };

  struct Report {
    // True if every push was acknowledged before the step limit.
    bool complete = false;
    // Values of the shard's elements, and the sums of the acknowledged pushes
    // for the same elements.
    std::vector<float> values;
    std::vector<float> acknowledged;
    // Largest distance, in sequence numbers, of a sent push from the oldest
    // unanswered one.
    uint64_t max_ahead = 0;
    // Numbers of the events that the simulation is meant to test.
    size_t sent_again = 0;
    size_t late_deliveries = 0;
    size_t duplicates = 0;
    size_t restores = 0;
    // Number of push-pulls that were answered, and of values among these that
    // lack an acknowledged push or the push-pull's own.
    size_t push_pulls = 0;
    size_t old_values = 0;
  };

  explicit PushSimulation(const Options& options);

  // Runs the simulation. May be called once.
  Report Run();

 private:
  using Message = ShardOutbox::Message;

  struct Stream {
    std::deque<Message> to_shard;
    std::vector<uint64_t> to_worker;  // ids of answers, in any order
  };

  struct Worker {
    explicit Worker(size_t lanes, const ShardOutbox::Limits& limits)
        : outbox(lanes, limits), streams(lanes), lane_messages(lanes) {}

    uint64_t incarnation = 0;
    ShardOutbox outbox;
    std::vector<Stream> streams;  // one per lane
    std::vector<size_t> lane_messages;
    // Streams that have ended while some of their messages are not lost.
    std::vector<Stream> ghosts;
    size_t started = 0;
    std::set<uint64_t> unanswered;  // sequences that have been sent
  };

  void StartPush(Worker& worker);
  void Transmit(Worker& worker, size_t lane);
  // Delivers the stream's next message to the shard. No answer reaches a worker
  // that has given the stream up (`is_ghost`).
  void Deliver(Worker& worker, Stream& stream, bool is_ghost);
  // Returns the shard's values of the push's ranges.
  std::vector<PayloadRef> ValuesOf(const wire::Push& push);
  void CheckValues(const EncodedOperation& push,
                   absl::Span<const PayloadRef> payloads);
  void Acknowledge(Worker& worker, size_t lane);
  void EndStream(Worker& worker, size_t lane);
  void DeliverLate(Worker& worker);
  void Restore();
  // The newest snapshot of a shard with a journal.
  struct Saved {
    std::vector<std::vector<float>> values;
    DedupWindows windows;
    std::optional<JournalPlace> place;
  };
  void Save();
  void Lose();
  void CutOffARecord();
  void RestoreWithJournal();
  void Step();
  bool IsComplete() const;
  bool IsStarved(const Worker& worker, size_t lane) const;

  // Returns a random number in [0, n).
  size_t Below(size_t n) { return random_() % n; }

  const Options options_;
  std::mt19937_64 random_;
  std::vector<Worker> workers_;
  const std::shared_ptr<const Call> call_;  // the one that all pushes are of
  std::unique_ptr<ParameterShard> table_;
  Saved saved_;
  uint64_t fresh_identity_ = 1;
  float target_ = 0;  // memory that push-pulls name, and nobody writes
  Report report_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_
