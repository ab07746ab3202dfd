#ifndef PARASOL_EVALUATOR_EVALUATED_MODEL_H_
#define PARASOL_EVALUATOR_EVALUATED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evaluator/checkpoint_rows.h"
#include "ml/device/device.h"
#include "ml/input/input_pipeline.h"
#include "ml/metric/metric_results.h"
#include "ml/metric/metrics.h"
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
  // Errors are those of InputPipeline::Open(), Device::Open(), Model::Create(),
  // Metrics::Create().
  static absl::StatusOr<std::unique_ptr<EvaluatedModel>> Create(
      const job::Job& job, const Options& options);

  // Takes over the values of the checkpoint in `directory`, and reads its
  // sparse tables into memory.
  //   NotFound   the checkpoint is not there (any more).
  //   DataLoss   it is damaged, or lacks values of this model.
  //   any other  as for CheckpointReader::Open().
  absl::StatusOr<durable::CheckpointManifest> Load(
      const std::string& directory);

  // Of the whole data set.
  struct Result {
    int64_t examples = 0;
    double loss = 0;  // mean over the examples, L2 terms included
    MetricResults metrics;
  };

  // With the values of the last Load().
  //   Cancelled  `cancelled`, asked before each batch, was true.
  //   any other  as for InputPipeline and Model::Evaluate(): another
  //              checkpoint would not fare better.
  absl::StatusOr<Result> Run(const std::function<bool()>& cancelled);

  const std::string& device_name() const { return device_->name(); }
  Device::Kind device_kind() const { return device_->kind(); }

 private:
  EvaluatedModel(const job::Dataset& dataset, Metrics metrics)
      : dataset_(dataset), metrics_(std::move(metrics)) {}

  job::Dataset dataset_;
  const Metrics metrics_;  // of nothing yet
  InputOptions input_;
  std::unique_ptr<InputPipeline> examples_;  // keeps them in memory
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::vector<CheckpointRows> tables_;  // as the model numbers them
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATED_MODEL_H_
