#ifndef PARASOL_ML_MODEL_PASS_EXECUTOR_H_
#define PARASOL_ML_MODEL_PASS_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/kernel/l2.h"
#include "ml/layer/layer.h"
#include "ml/loss/loss.h"
#include "ml/model/backward_pass.h"
#include "ml/model/graph.h"
#include "ml/model/layer_passes.h"
#include "ml/model/pass_arguments.h"
#include "ml/model/pass_memory.h"
#include "ml/model/plan.h"
#include "ml/model/row_gradient_memory.h"
#include "ml/model/staged_inputs.h"
#include "ml/model/variable_layout.h"

namespace parasol {

// Enqueues the work of a pass, in order, and waits for nothing. Errors of the
// device: ResourceExhausted, it is full; Unavailable, it was lost. Not
// thread-safe.
class PassExecutor {
 public:
  struct Options {
    bool training = false;
    // True if the rows of tables may be asked for gradients.
    bool row_gradients = false;
    uint64_t seed = 0;
    // Values of the variables, one array each, which must stay until the pass
    // is over.
    absl::Span<const float* const> variables = {};
    // The backward pass, of the plan that this object has, that starts from the
    // gradients of the losses; null: losses have no gradients.
    BackwardPass* of_losses = nullptr;
  };

  // All arguments must outlive this object. `losses`: one for each output, or
  // none, and then there are no L2 terms either.
  PassExecutor(const Graph& graph, const Plan& plan,
               const std::vector<Loss>& losses, Device& device);

  // Makes room for a pass over `batch`, whose rows have been written, and
  // orders the compute stream behind the copies to the device. The caller keeps
  // `batch` until the pass is over. The work that follows may be enqueued
  // again, or be recorded.
  absl::Status Begin(StagedInputs& batch, const Options& options);

  // Enqueues the pass's arguments, every step's output, then the losses, which
  // are fetched to the host.
  absl::Status RunForward();

  // Enqueues `backward`, whose plan has the steps of this one's, after
  // RunForward(): its room is reserved and the gradients by the outputs are in
  // it. `gradients` are the arrays that gradients by variables are written to,
  // one each. Calls `written` for BackwardPass::written() right after the last
  // work that writes their gradients has been enqueued; an error of `written`
  // ends the pass.
  absl::Status RunBackward(
      BackwardPass& backward, absl::Span<float* const> gradients,
      absl::FunctionRef<absl::Status(const VariableRange&)> written);

  // Enqueues the changes of variables that are not trained, after RunForward()
  // with training: what is to be subtracted from them. `changes`: arrays of the
  // variables, null for those that are trained.
  absl::Status RunUntrainedChanges(absl::Span<float* const> changes);

  // Address of the table's rows in the present pass, in the device's memory.
  const TableRows* rows(size_t table) const { return arguments_.rows(table); }

  PassMemory& memory() { return memory_; }
  RowGradientMemory& row_gradients() { return row_gradients_; }

 private:
  // l2 · (sum of squares) of a variable or of a table's rows.
  struct Regularizer {
    bool is_table = false;
    size_t index = 0;
    double l2 = 0;
  };
  // Arrays that a step's layer reads and writes.
  struct Arrays {
    std::vector<ConstElements> x;
    std::vector<Elements> dx;
  };

  static std::vector<Regularizer> RegularizersOf(const Graph& graph);
  L2Term TermOf(const Regularizer& regularizer) const;
  absl::Status ComputeLosses();
  absl::Status RunStepBack(
      const BackwardPass& backward, size_t index,
      absl::Span<float* const> gradients,
      absl::FunctionRef<absl::Status(const VariableRange&)> written);
  absl::Status AddVariableL2(const VariableRange& range,
                             absl::Span<float* const> gradients);
  absl::Status AddRowL2();
  // Says where this pass's rows are, and their gradients.
  void SetRows();
  uint64_t SeedOffsetOf(size_t step) const;
  StoredSeed StoredSeedOf(size_t step) const {
    return {.base = arguments_.seed(), .offset = SeedOffsetOf(step)};
  }
  RowsView RowsOf(const PlanStep& step) const;
  absl::Span<const float* const> VariablesOf(const PlanStep& step) const {
    return options_.variables.subspan(step.first_variable, step.num_variables);
  }

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<Loss>& losses_;  // one per output, or none
  Device& device_;
  const std::vector<Regularizer> regularizers_;
  PassMemory memory_;
  LayerPasses layer_passes_;
  RowGradientMemory row_gradients_;
  PassArguments arguments_;

  // State of the present pass.
  Options options_;
  StagedInputs* batch_ = nullptr;
  absl::Span<const std::unique_ptr<LayerPass>> passes_;  // one per step
  std::vector<Arrays> arrays_;                           // one per step
  // Terms of one call; kept here lest each call allocates.
  std::vector<L2Term> l2_terms_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_EXECUTOR_H_
