#ifndef PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_CONTENTS_H_
#define PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_CONTENTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/variable_spec.h"
#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The variables and sparse tables of a job as the manifest of its checkpoints
// lists them: names, shapes, widths and the optimizers' slots, in the job's
// order.
struct CheckpointContents {
  std::vector<durable::CheckpointVariable> variables = {};
  std::vector<durable::CheckpointTable> tables = {};

  // Adds the variables and tables to `manifest`.
  void AddTo(durable::CheckpointManifest& manifest) const;
};

// Returns the optimizer of one of the job's variables, as far as its slots go:
// its own or the job's, or PlainSubtraction() if it is not trained.
//   InvalidArgument  it can't be used; the message names the variable.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizerOf(
    const VariableSpec& variable, const job::Job& job);

// Returns the contents of the checkpoints of `job`, whose model has
// `variables`.
//   InvalidArgument  an optimizer can't be used; the message names its variable
//                    or its table.
absl::StatusOr<CheckpointContents> ContentsOf(
    const std::vector<VariableSpec>& variables, const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_CONTENTS_H_
