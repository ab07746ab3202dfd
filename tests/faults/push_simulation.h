#ifndef PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_
#define PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "cluster/client/shard_outbox.h"
#include "ps/shard/dedup_window.h"
#include "ps/shard/parameter_table.h"

namespace parasol {

// Workers that push to one shard over a bad network, as one deterministic run
// of a random schedule: the workers' real outboxes, the shard's real table, and
// between them streams that are simulated. No threads, no sockets, no time.
//
// What may happen, at any moment and in any order: a stream ends, and what it
// carried is lost or reaches the shard later, even after it was sent again on
// the next stream and answered there; answers are lost, delayed and overtake
// each other; the shard is replaced by one that was restored from its cut.
//
// All gradients are small integers and the optimizer subtracts them, so sums in
// float32 are exact.
class PushSimulation {
 public:
  // Ways to break the system, to see that the simulation notices.
  enum class Mutant {
    kNone,
    // The shard takes each delivery for a new push.
    kFreshIdentity,
    // A restored shard does not know what its predecessor has applied.
    kForgetsWhenRestored,
  };
  struct Options {
    uint64_t seed = 0;
    size_t workers = 3;
    size_t lanes = 2;
    // Of each worker.
    size_t pushes = 40;
    // Of one message.
    size_t message_requests = 4;
    // In a thousand steps, about so many times.
    size_t stream_ends = 30;
    size_t restores = 5;
    // Lane 0 of each worker carries nothing but its first message until all
    // others have nothing left to do: the outbox must stop at the window.
    bool starve_first_lane = false;
    Mutant mutant = Mutant::kNone;
  };

  struct Report {
    // Every push was acknowledged before the step limit.
    bool complete = false;
    // Over the shard's elements: what it holds and what the acknowledged
    // pushes add up to.
    std::vector<float> values;
    std::vector<float> acknowledged;
    // How far a push was ever sent ahead of an unanswered one.
    uint64_t max_ahead = 0;
    // How often what the simulation is for has happened.
    size_t sent_again = 0;
    size_t late_deliveries = 0;
    size_t duplicates = 0;
    size_t restores = 0;
  };

  explicit PushSimulation(const Options& options);

  // Once.
  Report Run();

 private:
  using Message = ShardOutbox::Message;

  struct Stream {
    std::deque<Message> to_shard;
    std::vector<uint64_t> to_worker;  // ids, in any order
  };

  struct Worker {
    explicit Worker(size_t lanes, const ShardOutbox::Limits& limits)
        : outbox(lanes, limits), streams(lanes), lane_messages(lanes) {}

    uint64_t incarnation = 0;
    ShardOutbox outbox;
    std::vector<Stream> streams;  // of each lane
    std::vector<size_t> lane_messages;
    // Streams that have ended, but not all that they carry is lost.
    std::vector<Stream> ghosts;
    size_t started = 0;
    std::set<uint64_t> unanswered;  // sequences that have been sent
  };

  void StartPush(Worker& worker);
  void Transmit(Worker& worker, size_t lane);
  // Carries out the stream's next message. A worker that has given the stream
  // up does not hear of it.
  void Deliver(Worker& worker, Stream& stream, bool is_ghost);
  void Acknowledge(Worker& worker, size_t lane);
  void EndStream(Worker& worker, size_t lane);
  void DeliverLate(Worker& worker);
  void Restore();
  void Step();
  bool IsComplete() const;
  bool IsStarved(const Worker& worker, size_t lane) const;

  // In [0, n).
  size_t Below(size_t n) { return random_() % n; }

  const Options options_;
  std::mt19937_64 random_;
  std::vector<Worker> workers_;
  std::unique_ptr<ParameterTable> table_;
  uint64_t fresh_identity_ = 1;
  Report report_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_PUSH_SIMULATION_H_
