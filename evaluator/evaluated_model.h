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
    // Directory that the data set's paths are relative to.
    std::string data_dir;
    // The arguments of Device::Open().
    std::string device = "auto";
    int threads = 1;
  };

  // Creates the model of `job`, which must have an eval data set. Opens the
  // data set once, to find errors early. Errors are those of
  // ResolveGraph(), InputPipeline::Open(), Device::Open(), Model::Create(),
  // Metrics::Create().
  static absl::StatusOr<std::unique_ptr<EvaluatedModel>> Create(
      const job::Job& job, const Options& options);

  // Loads the values of the checkpoint in `directory` into the model, and reads
  // its sparse tables into memory.
  //   NotFound   the checkpoint does not exist, or no longer.
  //   DataLoss   it is damaged, or lacks values of this model.
  //   any other  as for CheckpointReader::Open().
  absl::StatusOr<durable::CheckpointManifest> Load(
      const std::string& directory);

  // Results over the whole data set.
  struct Result {
    int64_t examples = 0;
    double loss = 0;  // mean per example, L2 terms included
    MetricResults metrics;
  };

  // Evaluates the values of the last Load(). Calls `cancelled` before each
  // batch.
  //   Cancelled  `cancelled` returned true.
  //   any other  as for InputPipeline and Model::Evaluate(): another
  //              checkpoint would not fare better.
  absl::StatusOr<Result> Run(const std::function<bool()>& cancelled);

  const std::string& device_name() const { return device_->name(); }
  Device::Kind device_kind() const { return device_->kind(); }

 private:
  EvaluatedModel(const job::Dataset& dataset, Metrics metrics)
      : dataset_(dataset), metrics_(std::move(metrics)) {}

  job::Dataset dataset_;
  const Metrics metrics_;  // metrics without examples
  InputOptions input_;
  std::unique_ptr<InputPipeline> examples_;  // keeps the examples in memory
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::vector<CheckpointRows> tables_;  // order of the model's tables
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATED_MODEL_H_
