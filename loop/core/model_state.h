#ifndef PARASOL_LOOP_CORE_MODEL_STATE_H_
#define PARASOL_LOOP_CORE_MODEL_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loop/core/step_changes.h"
#include "loop/core/variable_state.h"
#include "ml/model/graph.h"
#include "ml/tape/model/model_operation.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// A model of a program: its graph as an operation on each replica's device, and
// the variables that all of them read.
//
// Used by the program's thread and, in a step, by the replicas' threads, each
// of which calls its own operation.
class ModelState {
 public:
  // The parts of a model. `variables` and `tables` are the graph's, in its
  // order, and of one world, which outlives the state.
  struct Parts {
    std::string name;
    Graph graph;
    std::vector<std::shared_ptr<VariableState>> variables = {};
    std::vector<std::shared_ptr<VariableState>> tables = {};
    uint64_t seed = 0;  // key of what calls draw at random
  };

  // Returns errors of ModelOperation::Create().
  static absl::StatusOr<std::shared_ptr<ModelState>> Create(Parts parts,
                                                            World& world);

  const std::string& name() const { return parts_.name; }
  const Graph& graph() const { return parts_.graph; }

  // Computes the outputs of the inputs, which are in the model's order, on the
  // replica whose step the calling thread is in, or on the first one of this
  // process outside of steps. Without a seed, the draws depend on the step, the
  // replica, and the number of such calls before this one in the step.
  //   InvalidArgument      (as each output's status) an input does not fit:
  //                        names the model and the input.
  //   FailedPrecondition   the step is one of another strategy.
  std::vector<Tensor> Call(absl::Span<const Tensor> inputs, bool training,
                           std::optional<uint64_t> seed);
  // Returns ModelOperation::RegularizationLoss() of the values of that replica.
  Tensor RegularizationLoss();

 private:
  // A replica's operation, and memory that is used again.
  struct Replica {
    std::unique_ptr<ModelOperation> operation;
    std::vector<Tensor> dense;
    std::vector<Tensor> ids;
    std::vector<Tensor> variables;
    std::vector<Tensor> tables;
    std::vector<Tensor> changes;
  };

  ModelState(Parts parts, World& world);

  absl::StatusOr<std::vector<Tensor>> TryCall(absl::Span<const Tensor> inputs,
                                              bool training,
                                              std::optional<uint64_t> seed);
  absl::Status SetInputs(absl::Span<const Tensor> inputs, Replica& replica);
  // Reads the values of all variables and tables.
  void SetValues(int local, Replica& replica) const;
  absl::Status Change(int local, int64_t examples,
                      const std::vector<ModelOperation::Change>& changes);
  uint64_t NextSeed(int local);
  Tensor Failed(const absl::Status& status) const;

  const Parts parts_;
  World& world_;
  std::vector<Replica> replicas_;  // index: replica of this process
  // Index: variable. Its number in `changes_`; none: calls don't change it.
  std::vector<std::optional<size_t>> change_of_;
  std::shared_ptr<StepChanges> changes_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_MODEL_STATE_H_
