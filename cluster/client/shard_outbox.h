#ifndef PARASOL_CLUSTER_CLIENT_SHARD_OUTBOX_H_
#define PARASOL_CLUSTER_CLIENT_SHARD_OUTBOX_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cluster/client/shard_request.h"
#include "cluster/rpc/chunk.h"

namespace parasol {

// The requests to one shard from Add() until they are answered, and which of
// them may be sent now: pure bookkeeping, without streams, threads or time.
//
// Each lane is the order of one stream. Requests leave a lane in the order in
// which they came, as many in one message as there are and fit. When a stream
// ends, all that it has not answered leaves again on the next one, in the same
// order and under the same ids and sequences.
//
// Invariants, on which "exactly once" rests (see DedupWindow):
//   - A push gets its sequence when it first leaves: 1, 2, 3, … over all lanes.
//     It keeps it until it is answered.
//   - No sequence leaves that is kDedupWindow or more above one that has left
//     and is not answered.
//
// Not thread-safe.
class ShardOutbox {
 public:
  using RequestPtr = std::shared_ptr<ShardRequest>;
  using Message = std::vector<RequestPtr>;

  struct Limits {
    // Of one message; a request that is larger travels alone.
    size_t message_bytes = 1 << 20;
    size_t message_requests = kMaxOperationsPerMessage;
    // Of a lane: what the shard may have to keep at once. Requests that wait
    // for other workers don't count: none of these could be complete if each
    // worker held back the half that the others wait for.
    size_t in_flight_bytes = 32 << 20;
    size_t in_flight_requests = 4096;
  };

  ShardOutbox(size_t lanes, const Limits& limits);

  // At the end of the lane that the request names.
  void Add(RequestPtr request);

  // The lane's next message, in flight from now on. Empty: nothing waits, or
  // an answer must come first.
  Message Take(size_t lane);

  // The request that the lane's stream answers under `id`, which is then
  // forgotten. Null: there is none in flight.
  RequestPtr Answer(size_t lane, uint64_t id);

  // The lane's stream has ended: what it has not answered waits again.
  void Rewind(size_t lane);

  // Gives up everything; what has left may yet reach the shard.
  Message TakeAll();

  bool HasWaiting(size_t lane) const;
  size_t unanswered() const { return unanswered_; }
  // Those of the unanswered that the shard could have answered: not in flight
  // and waiting for other workers.
  size_t owed() const { return unanswered_ - held_; }

 private:
  // A stuck answer lets this many later ones overtake it.
  static constexpr size_t kMaxSpan = 65536;

  // Ids are consecutive in a lane: requests[i] has the id first_id + i.
  struct Lane {
    std::deque<RequestPtr> requests;  // null: answered
    uint64_t first_id = 1;
    size_t departed = 0;  // of `requests`; the rest waits
    size_t in_flight = 0;
    size_t in_flight_bytes = 0;
  };

  bool FitsInto(const Message& message, size_t bytes, size_t payloads,
                const ShardRequest& request) const;
  bool MayLeave(const Lane& lane, const ShardRequest& request) const;
  void Depart(Lane& lane, ShardRequest& request);
  // Out of the counts of what is in flight.
  void Arrive(Lane& lane, const ShardRequest& request);
  void AnswerSequence(uint64_t sequence);

  const Limits limits_;
  std::vector<Lane> lanes_;
  size_t unanswered_ = 0;
  size_t held_ = 0;
  // All sequences from oldest_unanswered_ to next_sequence_ have left; those
  // that are answered have their bit set, at sequence modulo the window.
  uint64_t oldest_unanswered_ = 1;
  uint64_t next_sequence_ = 1;
  std::bitset<kDedupWindow> answered_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SHARD_OUTBOX_H_
