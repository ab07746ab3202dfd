#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_GROUP_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"

namespace parasol {

// The operations of a group whose ranks are threads of this process.
// Thread-safe.
class MemoryGroup {
 public:
  // The name of an operation, the same for all ranks, as an error shows it:
  // "all-reduce of 17 elements".
  using Kind = std::string;

  // One rank's part in an operation.
  struct Part {
    Kind kind = {};
    std::vector<Contribution> contributions = {};
    absl::Span<float> sum = {};
    ElementRange sum_range = {};  // the elements of the pack that go to `sum`
    std::string bytes = {};
    std::vector<std::string>* gathered = nullptr;
    absl::Span<std::byte> target = {};
    Collective::Done done = {};
  };
  // Carries an operation out, given the parts of all ranks.
  using Work = std::function<void(std::vector<Part>& parts)>;

  // `group`: as any of its ranks has it.
  MemoryGroup(const CollectiveGroup& group, Clock& clock);

  bool IsSame(const CollectiveGroup& group) const;
  // Notes that the rank is there.
  void Enter(int rank) ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until all ranks are there.
  //   DeadlineExceeded  `limit` has passed first.
  //   Cancelled         `cancelled`, which this object's Wake() makes it look
  //   at.
  absl::Status AwaitAll(absl::Duration limit, const bool& cancelled)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CancelWait(bool& cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  // Begins the rank's next operation; the rank that is last does its `work`.
  void Begin(int rank, Part part, const Work& work) ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until the rank has no operation that is pending.
  absl::Status Await(int rank) ABSL_LOCKS_EXCLUDED(mu_);
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the group on this rank alone; operations that the others have begun
  // and it has not can't complete.
  void Leave(int rank, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status status(int rank) const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the ranks that have not begun the rank's oldest operation.
  std::vector<int> Awaited(int rank) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Operation {
    std::vector<Part> parts;
    std::vector<bool> has_begun;
    size_t begun = 0;
  };
  struct Member {
    bool is_there = false;
    uint64_t begun = 0;
    int pending = 0;
    absl::Status status;
  };
  struct Ended {
    int rank;
    Collective::Done done;
    absl::Status status;
  };

  // Notes the part. Returns the operation if it was the last one.
  std::vector<Part> Add(int rank, Part part, std::vector<Ended>& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the group on the rank: its operations complete with `why`.
  void End(int rank, const absl::Status& why, std::vector<Ended>& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAll(const absl::Status& why, std::vector<Ended>& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls the callbacks, then counts them as done.
  void Complete(std::vector<Ended> ended) ABSL_LOCKS_EXCLUDED(mu_);

  const CollectiveGroup group_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Operation> operations_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_GROUP_H_
