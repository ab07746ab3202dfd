#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_EVALUATED_MODEL_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_EVALUATED_MODEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/checkpoint_model.h"
#include "ml/device/device.h"
#include "ml/evaluation/model_evaluation.h"
#include "ml/layer/variable_spec.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// A job's model on one device, and its eval data set. Not thread-safe.
class EvaluatedModel {
 public:
  struct Options {
    // Directory that the data set's paths are relative to.
    std::string data_dir;
    CheckpointModel::Options compute = {};
  };

  // Creates the model of `job`, which must have an eval data set. Opens the
  // data set once, to find errors early. Fails as ResolveGraph(),
  // ModelEvaluation::Open(), Device::Open() and Model::Create() do.
  static absl::StatusOr<std::unique_ptr<EvaluatedModel>> Create(
      const job::Job& job, const Options& options);

  // Loads the values of the checkpoint in `directory`, as
  // CheckpointModel::Load() does.
  absl::StatusOr<durable::CheckpointManifest> Load(
      const std::string& directory, CheckpointModel::VisitValues visit =
                                        [](size_t, absl::Span<const float>) {});
  const std::vector<VariableSpec>& variables() const {
    return checkpoint_->model().variables();
  }

  // Returns the values of some rows of a table, as
  // CheckpointModel::SampleRows() does.
  absl::StatusOr<std::vector<float>> SampleRows(size_t table) {
    return checkpoint_->SampleRows(table);
  }

  using Result = ModelEvaluation::Result;

  // Evaluates the values of the last Load(), as ModelEvaluation::Run() does.
  absl::StatusOr<Result> Run(
      const std::function<bool()>& cancelled,
      ModelEvaluation::VisitOutputs visit = [](absl::Span<const float>) {
        return absl::OkStatus();
      });

  const std::string& device_name() const {
    return checkpoint_->device().name();
  }
  Device::Kind device_kind() const { return checkpoint_->device().kind(); }

 private:
  EvaluatedModel() = default;

  std::unique_ptr<ModelEvaluation> evaluation_;
  std::unique_ptr<CheckpointModel> checkpoint_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_EVALUATED_MODEL_H_
