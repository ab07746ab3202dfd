#ifndef PARASOL_CLUSTER_COLLECTIVE_SOCKET_COLLECTIVE_H_
#define PARASOL_CLUSTER_COLLECTIVE_SOCKET_COLLECTIVE_H_

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "cluster/collective/group_protocol.h"
#include "cluster/collective/protocol_collective.h"
#include "cluster/collective/rank_link.h"
#include "cluster/collective/spinning.h"
#include "cluster/collective/work_turns.h"

namespace parasol {

class SocketCollective;

// The group that an endpoint has joined last, as long as its user has it.
// Thread-safe.
class NewestGroup {
 public:
  void Set(SocketCollective* group) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    group_ = group;
  }
  // Forgets `group`, which is being destroyed.
  void Clear(SocketCollective* group) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (group_ == group) group_ = nullptr;
  }
  // Ends the group, if there is one.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  SocketCollective* group_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// A group whose ranks have a connection to each other: a GroupProtocol with
// sockets, a clock and a thread.
class SocketCollective : public ProtocolCollective {
 public:
  struct Options {
    GroupProtocol::Options protocol;
    // Knows the object until it is destroyed; may be null.
    std::shared_ptr<NewestGroup> newest = nullptr;
  };

  // `connected`: a connection to each other rank, which has said hello. `clock`
  // must outlive the object.
  SocketCollective(CollectiveGroup group, std::map<int, Descriptor> connected,
                   const Options& options, Clock& clock);
  // Tells the others that this rank leaves, and waits a moment until they know.
  ~SocketCollective() override;

  const CollectiveGroup& group() const override { return group_; }
  absl::Status Await() override;
  std::vector<int> Awaited() const override ABSL_LOCKS_EXCLUDED(mu_);
  void Abort(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status status() const override ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<float[]> AllocateContribution(size_t count) override;

  // Takes pieces of rank `peer` from `lane` from now on; SendByLanes() has all
  // lanes used for what this rank sends.
  void UseLane(int peer, std::unique_ptr<PieceLane> lane)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SendByLanes(const std::vector<int>& peers) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls `on_end` once, when the group has ended or as it has: with no lock
  // held, before the object is destroyed.
  void SetOnEnd(std::function<void()> on_end) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the group on this rank: what it has not completed ends for the others.
  // Callbacks are called by another thread.
  void Leave(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if it is Leave() that has ended the group on this rank.
  bool has_left() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Begin(const OperationSpec& spec, OperationMemory memory,
             Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  // Sends and receives what can be; blocks for `limit` at most if that is
  // nothing.
  void Work(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until a socket can be read or written, or for `limit`.
  void Poll(std::vector<pollfd>& polled, absl::Duration limit);
  void Receive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the protocol's frames to the links. Returns false if there are none.
  bool QueueFrames() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives the protocol's frames to the links, and these to the sockets. No link
  // has memory of operations afterwards if the group has ended.
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the memory of operations from the links, if the group has ended.
  void ReleaseIfEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Interrupt();
  bool WantsToSend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls the callbacks of operations that have ended.
  void RunCompletions() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until the other ends have all that was sent, for a moment at most.
  void Linger() ABSL_LOCKS_EXCLUDED(mu_);

  const CollectiveGroup group_;
  const Options options_;
  Clock& clock_;
  const Descriptor wake_;          // an eventfd
  const bool may_spin_;            // the ranks of this machine have a core each
  std::atomic<int> pending_ = 0;   // callbacks that have not returned
  std::atomic<int> awaiting_ = 0;  // callers of Await()
  Spinning spinning_;              // used by the thread whose turn it is

  mutable absl::Mutex mu_;
  GroupProtocol protocol_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<RankLink>> links_ ABSL_GUARDED_BY(mu_);
  bool has_released_ ABSL_GUARDED_BY(mu_) = false;
  bool has_left_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> on_end_ ABSL_GUARDED_BY(mu_);

  WorkTurns turns_;  // ends first
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SOCKET_COLLECTIVE_H_
