#ifndef PARASOL_CLUSTER_COLLECTIVE_SHARED_COLLECTIVE_H_
#define PARASOL_CLUSTER_COLLECTIVE_SHARED_COLLECTIVE_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/contribution_pool.h"
#include "cluster/collective/shared_segment.h"
#include "cluster/collective/shared_sums.h"
#include "cluster/collective/socket_collective.h"
#include "cluster/collective/work_turns.h"

namespace parasol {

// A group whose ranks share a machine: sums are taken in memory that all see.
// The rest, and who is lost, is its connections' affair.
class SharedCollective : public Collective {
 public:
  // Returns a group that sums in shared memory and has `sockets`; null, and
  // `sockets` stays, if a rank has none or can't open another's. All ranks call
  // it, as the first thing that they do with the group. Fails with the group's
  // error if it has ended.
  static absl::StatusOr<std::unique_ptr<Collective>> MakeIfAllShare(
      std::unique_ptr<SocketCollective>& sockets);

  ~SharedCollective() override;

  const CollectiveGroup& group() const override { return sockets_->group(); }
  void AllReduce(std::vector<Contribution> contributions, absl::Span<float> sum,
                 Done done) override;
  void ReduceScatter(std::vector<Contribution> contributions, size_t count,
                     absl::Span<float> slice, Done done) override;
  void AllGather(absl::string_view own, std::vector<std::string>* gathered,
                 Done done) override;
  void Broadcast(int source, const std::vector<int>& receivers,
                 absl::Span<std::byte> bytes, Done done) override;
  absl::Status Await() override;
  std::vector<int> Awaited() const override;
  void Abort(const absl::Status& why) override { sockets_->Abort(why); }
  absl::Status status() const override { return sockets_->status(); }
  std::shared_ptr<float[]> AllocateContribution(size_t count) override;

 private:
  struct Pending {
    SharedSum sum;
    Done done;
  };

  SharedCollective(std::unique_ptr<SocketCollective> sockets,
                   std::vector<std::unique_ptr<SharedSegment>> segments);

  void Begin(SharedSum sum, Done done) ABSL_LOCKS_EXCLUDED(mu_);
  // Goes on with sums; blocks for `limit` at most while it waits for others.
  void Work(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Begins the next sum. Returns false if there is none.
  bool BeginNext() ABSL_LOCKS_EXCLUDED(mu_);
  void CompleteAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  void Complete(const Done& done, const absl::Status& status);

  std::atomic<bool> has_ended_ = false;
  std::atomic<int> pending_ = 0;  // callbacks that have not returned
  absl::Mutex mu_;
  std::deque<Pending> queue_ ABSL_GUARDED_BY(mu_);

  // The following are used by the thread whose turn it is.
  ContributionPool pool_;
  SharedSums sums_;
  Done done_;  // callback of the sum that is being taken

  // Ends before what it interrupts, after the thread that uses it.
  const std::unique_ptr<SocketCollective> sockets_;
  WorkTurns turns_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SHARED_COLLECTIVE_H_
