#ifndef PARASOL_EVALUATOR_EVALUATED_MODEL_H_
#define PARASOL_EVALUATOR_EVALUATED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evaluator/checkpoint_rows.h"
#include "ml/input/input_pipeline.h"
#include "ml/kernel/device.h"
#include "ml/model/model.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// A job's model on one device, and its eval data set. Not thread-safe.
class EvaluatedModel {
 public:
  struct Options {
    // What the data set's paths are relative to.
    std::string data_dir;
    // As for Device::Open().
    std::string device = "auto";
    int threads = 1;
  };

  // `job` has an eval data set, which is opened once, to find errors early.
  // Errors are those of InputPipeline::Open(), Device::Open(), Model::Create().
  static absl::StatusOr<std::unique_ptr<EvaluatedModel>> Create(
      const job::Job& job, const Options& options);

  // Takes over the values of the checkpoint in `directory`, and reads its
  // sparse tables into memory.
  //   NotFound   the checkpoint is not there (any more).
  //   DataLoss   it is damaged, or lacks values of this model.
  //   any other  as for CheckpointReader::Open().
  absl::StatusOr<durable::CheckpointManifest> Load(
      const std::string& directory);

  struct Sums {
    int64_t examples = 0;
    double loss_sum = 0;  // as BatchResult's
    int64_t correct = 0;
  };

  // Sums over the whole data set, with the values of the last Load().
  //   Cancelled  `cancelled`, asked before each batch, was true.
  //   any other  as for InputPipeline and Model::Evaluate(): another
  //              checkpoint would not fare better.
  absl::StatusOr<Sums> Run(const std::function<bool()>& cancelled);

  const std::string& device_name() const { return device_->name(); }

 private:
  explicit EvaluatedModel(const job::Dataset& dataset) : dataset_(dataset) {}

  job::Dataset dataset_;
  InputOptions input_;
  std::unique_ptr<InputPipeline> examples_;  // keeps them in memory
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::vector<CheckpointRows> tables_;  // as the model numbers them
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATED_MODEL_H_
