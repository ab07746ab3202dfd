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
#include "ml/model/graph.h"
#include "ml/model/layer_passes.h"
#include "ml/model/pass_arguments.h"
#include "ml/model/pass_memory.h"
#include "ml/model/plan.h"
#include "ml/model/row_gradient_memory.h"
#include "ml/model/staged_inputs.h"
#include "ml/model/variable_layout.h"
#include "ml/model/variable_memory.h"

namespace parasol {

// Enqueues the work of a pass, in order, and waits for nothing. Errors of the
// device: ResourceExhausted, it is full; Unavailable, it was lost. Not
// thread-safe.
class PassExecutor {
 public:
  struct Options {
    bool training = false;
    uint64_t seed = 0;
  };

  // All arguments must outlive this object.
  PassExecutor(const Graph& graph, const Plan& plan,
               const std::vector<Loss>& losses, VariableMemory& variables,
               Device& device);

  // Makes room for a pass over `batch`, whose rows have been written, and
  // orders the compute stream behind the copies to the device. The caller keeps
  // `batch` until the pass is over. The work that follows may be enqueued
  // again, or be recorded.
  absl::Status Begin(StagedInputs& batch, const Options& options);

  // Enqueues the pass's arguments, every step's output, then the losses, which
  // are fetched to the host.
  absl::Status RunForward();

  // Ranges of variables that RunBackward() calls `written` for, in its order,
  // for each operation of the backward pass. On a device that shares the host's
  // memory a range is a step's variables; otherwise it is a piece in which
  // VariableMemory copies gradients, or a piece of WriteInPieces().
  absl::Span<const std::vector<VariableRange>> written() const {
    return written_;
  }
  // Has RunBackward() call `written` for each of `pieces`, which share no
  // variable.
  void WriteInPieces(const std::vector<VariableRange>& pieces) {
    written_ = PiecesBehind(plan_, pieces);
  }

  // Enqueues the backward pass, in training, after RunForward(). Calls
  // `written` for variables right after the last work that writes their
  // gradients has been enqueued; an error of `written` ends the pass.
  absl::Status RunBackward(
      absl::FunctionRef<absl::Status(const VariableRange&)> written);

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
      size_t index,
      absl::FunctionRef<absl::Status(const VariableRange&)> written);
  absl::Status AddVariableL2(const VariableRange& range);
  absl::Status AddRowL2();
  // Says where this pass's rows are, and their gradients.
  void SetRows();
  uint64_t SeedOffsetOf(size_t step) const;
  StoredSeed StoredSeedOf(size_t step) const {
    return {.base = arguments_.seed(), .offset = SeedOffsetOf(step)};
  }
  RowsView RowsOf(const PlanStep& step) const;
  absl::Span<const float* const> VariablesOf(const PlanStep& step) const {
    return variables_.values().subspan(step.first_variable, step.num_variables);
  }

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<Loss>& losses_;  // one per output
  VariableMemory& variables_;
  Device& device_;
  const std::vector<Regularizer> regularizers_;
  // One list for each backward operation.
  std::vector<std::vector<VariableRange>> written_;
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
