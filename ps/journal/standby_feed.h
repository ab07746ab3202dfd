#ifndef PARASOL_PS_JOURNAL_STANDBY_FEED_H_
#define PARASOL_PS_JOURNAL_STANDBY_FEED_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/rpc/follow_message.h"
#include "proto/parameter.pb.h"
#include "ps/journal/push_record.h"

namespace parasol {

// Returns what a shard's standby is told of the order by which the shard goes
// on: its settings. The header has the secret of the ps that it was for, with
// which anybody could give that one orders; the sources and the step are the
// shard's own.
wire::LoadRequest SettingsOf(const wire::LoadRequest& order);

// Pushes of a shard on their way to its standby, in the order in which the
// shard has applied them, and those whose acknowledgement waits for it.
// Thread-safe.
//
// One thread at a time sends: it begins a stream when it has cut the shard's
// state, takes records and tells how many the standby holds. What has not been
// held yet is bounded (kWindowBytes): pushes wait. A push of more than half of
// that counts as half: another one may follow.
class StandbyFeed {
 public:
  using Done = std::function<void(const absl::Status&)>;

  static constexpr size_t kWindowBytes = 64 << 20;
  // Bytes of an operation on a lane: the standby applies so many while they are
  // in a core's cache.
  static constexpr size_t kMessageBytes = 256 << 10;
  // Time that a push waits for room before it has to be sent again.
  static constexpr absl::Duration kRoomWait = absl::Milliseconds(100);

  // The moment at which a push is acknowledged.
  enum class Rule {
    // No moment yet: it is not known what the chief has kept.
    kWait,
    // Applied.
    kAlone,
    // Applied, and held by the standby.
    kHeld,
  };

  // `clock` must outlive the feed. The rule is kWait at first.
  explicit StandbyFeed(Clock& clock) : clock_(clock) {}

  // The shard's side. `step`: the one of a synchronous push.

  // Waits a moment for room for a push, if there is a stream.
  //   Unavailable  there is none, or the feed is closed.
  absl::Status AwaitRoom(std::optional<int64_t> step) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `apply` and, if it returns true and there is a stream, appends the
  // push; no other push is applied meanwhile, then. `journal_record`: the one
  // of the push in the shard's journal, which is sent when NoteKept() says so;
  // 0: it has no journal.
  //   Unavailable  the feed is closed, and `apply` was not called.
  absl::Status ApplyAndAppend(const ReceivedPush& push,
                              std::optional<int64_t> step,
                              uint64_t journal_record,
                              absl::FunctionRef<bool()> apply)
      ABSL_LOCKS_EXCLUDED(order_mu_, mu_);
  // Notes that the journal keeps its first `journal_record` records.
  void NoteKept(uint64_t journal_record) ABSL_LOCKS_EXCLUDED(mu_);
  // Appends what else changes the shard, if there is a stream. Rules that the
  // shard goes on by (SettingsOf(), without a global_step) are the first thing
  // in each later stream. Call it while no push is being applied.
  void AppendChange(const wire::LoadRequest& change) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `done` when all pushes so far may be acknowledged, before it returns
  // or on another thread; or with Unavailable when the feed is closed.
  void WhenKept(Done done) ABSL_LOCKS_EXCLUDED(mu_);

  // Begins a stream at the cut that is being made: call it while no push is
  // being applied. With `from_step` the cut lacks gradients of steps from there
  // on, and has all others.
  void Begin(std::optional<int64_t> from_step) ABSL_LOCKS_EXCLUDED(mu_);

  // The sender's side.

  // Waits for `limit` at most for something to send, and takes up to about
  // `max_bytes` of it. Each message has one change, or records: one, or several
  // of kMessageBytes together at most.
  std::vector<FollowMessage> Take(size_t max_bytes, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the standby holds the stream's first `records` records.
  //   InvalidArgument  there are not as many.
  absl::Status Held(int64_t records) ABSL_LOCKS_EXCLUDED(mu_);
  bool is_streaming() const ABSL_LOCKS_EXCLUDED(mu_);
  // Number of records that have been appended to the stream.
  int64_t appended() const ABSL_LOCKS_EXCLUDED(mu_);
  // Number of records that it does not hold yet.
  int64_t behind() const ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the stream: nothing is appended until the next Begin(). The rule
  // kHeld becomes kWait.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  // Sets the rule, of which kHeld is kWait while there is no stream; Release()
  // then calls those that wait for nothing any more.
  void SetRule(Rule rule) ABSL_LOCKS_EXCLUDED(mu_);
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the stream, calls all that wait, now and later, with Unavailable, and
  // returns when no call is under way. Not to be called by what waits.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Item {
    FollowRecord record;
    // Set instead of a record.
    std::optional<wire::LoadRequest> change;
    uint64_t journal_record = 0;
  };
  struct Waiting {
    int64_t stream;  // the stream that there was, and its last record
    int64_t record;
    Done done;
  };

  void Queue(const wire::LoadRequest& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ClearQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsWanted(std::optional<int64_t> step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsKept(const Waiting& one) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the first in the queue may be sent.
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !queue_.empty() && queue_.front().journal_record <= kept_;
  }

  Clock& clock_;

  // Makes the order of the records the one in which they are applied; before
  // the locks of chunks and tables.
  absl::Mutex order_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  mutable absl::Mutex mu_;
  Rule rule_ ABSL_GUARDED_BY(mu_) = Rule::kWait;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  // Number of streams so far, and whether the last one goes on.
  int64_t stream_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_streaming_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<int64_t> from_step_ ABSL_GUARDED_BY(mu_);
  // The newest rules, if they changed since the shard was made.
  std::optional<wire::LoadRequest> rules_ ABSL_GUARDED_BY(mu_);
  // The last stream's records: how many there are, and are held.
  int64_t appended_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t held_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mu_);
  uint64_t kept_ ABSL_GUARDED_BY(mu_) = 0;  // the journal's last kept record
  // Bytes of each record that is not held, and their sum.
  std::deque<size_t> unheld_ ABSL_GUARDED_BY(mu_);
  size_t unheld_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // number of those under way
};

}  // namespace parasol

#endif  // PARASOL_PS_JOURNAL_STANDBY_FEED_H_
