#ifndef PARASOL_PARAMETERS_CLIENT_SHARD_OUTBOX_H_
#define PARASOL_PARAMETERS_CLIENT_SHARD_OUTBOX_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cluster/rpc/protocol_limits.h"
#include "parameters/client/shard_operation.h"

namespace parasol {

// The operations to one shard from Add() until they are answered, and the
// decision which of them may be sent now. Pure bookkeeping, without streams,
// threads or time.
//
// Operations leave a lane in the order in which they came; a message takes as
// many as wait and fit. When a stream ends,
// all operations that it has not answered leave again on the next one, in the
// same order and under the same ids and sequences.
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
  using OperationPtr = std::shared_ptr<const EncodedOperation>;

  // An operation from Add() until it is answered.
  struct Entry {
    OperationPtr operation = nullptr;
    uint64_t id = 0;
    // The push's sequence; 0 if it has none, or has not left yet.
    uint64_t sequence = 0;
    // True if an earlier message had it: it is sent again.
    bool was_sent = false;
  };
  using Message = std::vector<Entry>;

  struct Limits {
    // Maximum bytes and operations of one message; an operation that is larger
    // travels alone.
    size_t message_bytes = 1 << 20;
    size_t message_operations = kMaxOperationsPerMessage;
    // Maximum bytes and operations in flight in a lane, which the shard may
    // have to keep at once. Operations that wait for other workers don't count.
    // Otherwise each worker could hold back the half that the others wait for,
    // and none of these operations could complete.
    size_t in_flight_bytes = 32 << 20;
    size_t in_flight_operations = 4096;
  };

  // Bytes of waiting operations from which on a lane's loop writes them: about
  // what is copied while a thread is woken. Pulls count by their answers: a
  // loop that is busy with those sends the next pull between two of them.
  static constexpr size_t kTurnBytes = 64 << 10;
  // Operations in flight from which on a lane's loop writes smaller ones too:
  // the answers wake it anyway, and what comes before its turn leaves together.
  static constexpr size_t kBusyOperations = 4;

  ShardOutbox(size_t lanes, const Limits& limits);

  // Appends the operation to the lane that it names.
  void Add(OperationPtr operation);

  // Takes the lane's next message, which is in flight from now on. Empty if no
  // operation waits, or an answer must come first.
  Message Take(size_t lane);

  // Returns the operation that is in flight in the lane under `id`, or null.
  OperationPtr InFlight(size_t lane, uint64_t id) const;

  // Removes and returns the operation that the lane's stream answers under
  // `id`. An empty entry if there is none in flight.
  Entry Answer(size_t lane, uint64_t id);

  // Notes that the lane's stream has ended: its unanswered operations wait
  // again.
  void Rewind(size_t lane);

  // Gives up and returns all operations; those that have left may yet reach the
  // shard.
  Message TakeAll();

  // Notes that the shard has refused a push that Answer() has returned.
  void NoteRefusal() { all_acknowledged_ = false; }
  // Returns the sequence up to which all pushes were acknowledged; 0 for good
  // once one was refused, or given up.
  uint64_t acknowledged() const {
    return all_acknowledged_ ? oldest_unanswered_ - 1 : 0;
  }

  // Returns the oldest id of the lane that is not answered, or the next one.
  uint64_t oldest_id(size_t lane) const { return lanes_[lane].first_id; }

  bool HasWaiting(size_t lane) const;
  // Returns true if what waits in the lane, of which Take() would give a
  // message, is better written by the loop of a payload lane, in its turn, than
  // by the caller: much of it, or anything while the lane is busy.
  bool LeavesInTurn(size_t lane) const;
  size_t unanswered() const { return unanswered_; }
  // Number of operations in flight in the lane that wait for no other worker.
  size_t in_flight(size_t lane) const { return lanes_[lane].in_flight; }
  // Number of unanswered operations that the shard could have answered: all
  // except those in flight that wait for other workers.
  size_t owed() const { return unanswered_ - held_; }

 private:
  // Number of later answers that may overtake a stuck one.
  static constexpr size_t kMaxSpan = 65536;

  // Ids are consecutive in a lane: entries[i] has the id first_id + i.
  struct Lane {
    // An answered entry has no operation.
    std::deque<Entry> entries;
    uint64_t first_id = 1;
    size_t departed = 0;  // number of `entries` that have left
    size_t in_flight = 0;
    size_t in_flight_bytes = 0;
  };

  bool FitsInto(const Message& message, size_t bytes, size_t payloads,
                const EncodedOperation& operation) const;
  bool MayLeave(const Lane& lane, const Entry& entry) const;
  // Returns true if Take() would give a message, and what waits has at least
  // `bytes`.
  bool HasWaitingBytes(const Lane& lane, size_t bytes) const;
  void Depart(Lane& lane, Entry& entry);
  // Removes the operation from the counts of what is in flight.
  void Arrive(Lane& lane, const EncodedOperation& operation);
  void AnswerSequence(uint64_t sequence);

  const Limits limits_;
  std::vector<Lane> lanes_;
  size_t unanswered_ = 0;
  size_t held_ = 0;
  // The sequences in [oldest_unanswered_, next_sequence_) have left. An
  // answered one has its bit set, at sequence modulo the window.
  uint64_t oldest_unanswered_ = 1;
  uint64_t next_sequence_ = 1;
  std::bitset<kDedupWindow> answered_;
  // True as long as what was answered was acknowledged.
  bool all_acknowledged_ = true;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_SHARD_OUTBOX_H_
