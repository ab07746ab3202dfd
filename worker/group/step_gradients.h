#ifndef PARASOL_WORKER_GROUP_STEP_GRADIENTS_H_
#define PARASOL_WORKER_GROUP_STEP_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "parameters/training_parameters.h"
#include "worker/group/gradient_packs.h"

namespace parasol {

// The gradients of one step that the replicas of this process have computed so
// far: variables' gradients in packs, as they travel, and rows' as bytes. A
// pack takes memory when a first variable of it is pushed: none where the
// gradients of variables stay on devices.
//
// Thread-safe. What takes time, to copy what was pushed, needs no lock: threads
// that compute replicas copy beside each other.
class StepGradients {
 public:
  // Returns zeroed memory for a number of elements.
  using Allocate = std::function<std::shared_ptr<float[]>(size_t)>;

  // `packs` must outlive this object. `tables`: number of sparse tables.
  StepGradients(const GradientPacks& packs, size_t tables);

  // The part of a push that is to be added, between Begin() and End(). Keeps
  // the memory to which it is copied, and borrows the push.
  class Addition {
   public:
    // Copies. May be called beside functions of StepGradients.
    void Copy();

   private:
    friend class StepGradients;
    struct Variable {
      absl::Span<const float> gradient;
      size_t pack = 0;
      size_t first = 0;
      std::shared_ptr<float[]> elements;
    };
    struct Rows {
      TrainingParameters::RowGradient gradient;
      std::string encoded = "";
    };

    int64_t step_ = 0;
    int replica_ = 0;
    std::vector<Variable> variables_;
    std::vector<Rows> rows_;
  };

  // Takes the memory of packs from `allocate`, from the next step on where
  // there is some; null: from this process.
  void AllocateBy(Allocate allocate) ABSL_LOCKS_EXCLUDED(mu_);

  // Notes which replicas are this process's. Gradients of other replicas are
  // freed when the next step begins: until then these may come back, and push
  // nothing again.
  void SetShare(std::vector<int> replicas) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns what a replica has pushed and is not there yet: nothing of a step
  // that is over. The first push of a step forgets the gradients of earlier
  // steps. The caller calls Copy(), and then End().
  Addition Begin(const TrainingParameters::PushRequest& push)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds what was copied, unless its step is over.
  void End(Addition addition) ABSL_LOCKS_EXCLUDED(mu_);

  // Return true if all of `replicas` have pushed the pack or table of `step`.
  bool HasPack(int64_t step, size_t pack,
               const std::vector<int>& replicas) const ABSL_LOCKS_EXCLUDED(mu_);
  bool HasRows(int64_t step, size_t table,
               const std::vector<int>& replicas) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the contributions of `replicas`, which have pushed the pack. Valid
  // until the next step begins.
  std::vector<Contribution> ContributionsTo(
      size_t pack, const std::vector<int>& replicas) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the rows of `replicas`, as EncodedRows has them.
  std::string RowsOf(size_t table, const std::vector<int>& replicas) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Pack {
    std::shared_ptr<float[]> elements;  // null: no variable was pushed
    size_t variables = 0;               // number of pushed ones
  };
  struct Replica {
    int64_t generation = 0;  // the memory's
    std::vector<Pack> packs;
    std::vector<bool> has_variable;  // set by Begin()
    std::vector<std::string> rows;
    std::vector<bool> takes_rows;  // set by Begin()
    std::vector<bool> has_rows;    // set by End()
    int additions = 0;             // number that this step's Begin() gave out
  };

  void BeginStep(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Replica& ReplicaOf(int replica) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const GradientPacks& packs_;
  const size_t tables_;

  mutable absl::Mutex mu_;
  Allocate allocate_ ABSL_GUARDED_BY(mu_);
  std::vector<int> share_ ABSL_GUARDED_BY(mu_);
  int64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  std::map<int, Replica> replicas_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STEP_GRADIENTS_H_
