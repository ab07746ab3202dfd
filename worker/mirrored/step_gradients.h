#ifndef PARASOL_WORKER_MIRRORED_STEP_GRADIENTS_H_
#define PARASOL_WORKER_MIRRORED_STEP_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/client/parameter_client.h"
#include "cluster/collective/collective.h"
#include "worker/mirrored/gradient_packs.h"

namespace parasol {

// The gradients of one step that the replicas of this process have computed so
// far: those of variables in packs, as they travel, and those of rows as bytes.
// A pack takes memory when a first variable of it is pushed: none where the
// gradients of variables stay on devices.
//
// Not thread-safe, but what takes time, to copy what was pushed, needs no lock:
// threads that compute replicas copy beside each other.
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
      ParameterClient::RowGradient gradient;
      std::string encoded = "";
    };

    int64_t step_ = 0;
    int replica_ = 0;
    std::vector<Variable> variables_;
    std::vector<Rows> rows_;
  };

  // Takes the memory of packs from `allocate`, from the next step on where
  // there is some; null: from this process.
  void AllocateBy(Allocate allocate);

  // Notes which replicas are this process's. Those of others are freed when the
  // next step begins: until then they may come back, and are not pushed again.
  void SetShare(std::vector<int> replicas);

  // Returns what a replica has pushed and is not there yet: nothing of a step
  // that is over. The first push of a step forgets those of the steps before.
  // The caller calls Copy(), and then End().
  Addition Begin(const ParameterClient::PushRequest& push);
  // Adds what was copied, unless its step is over.
  void End(Addition addition);

  // Return true if all of `replicas` have pushed the pack or table of `step`.
  bool HasPack(int64_t step, size_t pack,
               const std::vector<int>& replicas) const;
  bool HasRows(int64_t step, size_t table,
               const std::vector<int>& replicas) const;

  // Returns the contributions of `replicas`, which have pushed the pack. Valid
  // until the next step begins.
  std::vector<Contribution> ContributionsTo(
      size_t pack, const std::vector<int>& replicas) const;
  // Returns the rows of `replicas`, as EncodedRows has them.
  std::string RowsOf(size_t table, const std::vector<int>& replicas) const;

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

  void BeginStep(int64_t step);
  Replica& ReplicaOf(int replica);

  const GradientPacks& packs_;
  const size_t tables_;
  Allocate allocate_;
  std::vector<int> share_;
  int64_t generation_ = 0;
  int64_t step_ = -1;
  std::map<int, Replica> replicas_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_STEP_GRADIENTS_H_
