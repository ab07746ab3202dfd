#ifndef PARASOL_TOOL_PREDICTION_PREDICTION_RUN_H_
#define PARASOL_TOOL_PREDICTION_PREDICTION_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/checkpoint_model.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"
#include "tool/prediction/prediction_form.h"

namespace parasol {

// A checkpoint's model and a part of the examples of its job's eval data set,
// which need no labels. Not thread-safe.
class PredictionRun {
 public:
  struct Options {
    std::string data_dir = {};
    CheckpointModel::Options compute = {};
    // Layer whose outputs are wanted; empty: the model's outputs.
    std::string layer = {};
    // How outputs are written. A layer's are written as they are.
    PredictionForm::Options form = {};
    // Part `shard`, from 0, of `num_shards`: whole batches that follow each
    // other, so that all parts together are all examples in their order.
    int shard = 0;
    int num_shards = 1;
  };

  // Loads the checkpoint at `path`, as CheckpointAt() understands it, for its
  // own job with `overrides` ("eval.batch_size=100"), and opens the data.
  //   InvalidArgument  the job has no eval data set, or can't be used.
  //   any other        as for CheckpointModel and InputPipeline.
  static absl::StatusOr<std::unique_ptr<PredictionRun>> Open(
      const std::string& path, const std::vector<std::string>& overrides,
      const Options& options);

  // The fields of a prediction of an example.
  const std::vector<PredictionField>& fields() const { return form_->fields(); }

  // Calls `visit` with the values of fields() of one example after the other.
  // Fails as `visit`, InputPipeline and CheckpointModel do. Must be called
  // once.
  absl::Status Run(
      absl::FunctionRef<absl::Status(absl::Span<const PredictionValue>)> visit);

 private:
  PredictionRun() = default;
  absl::Status OpenExamples(const job::Job& job, const Graph& graph,
                            const std::vector<std::string>& label_columns,
                            const Options& options);

  std::optional<PredictionForm> form_;  // always there behind Open()
  int64_t batches_ = 0;                 // number in this part
  std::unique_ptr<CheckpointModel> model_;
  std::unique_ptr<InputPipeline> examples_;
};

// Parses "2/8", part 2 of the parts 0 to 7, the value of --shard.
//   InvalidArgument  it is not of this form.
absl::StatusOr<std::pair<int, int>> ParseShard(const std::string& text);

}  // namespace parasol

#endif  // PARASOL_TOOL_PREDICTION_PREDICTION_RUN_H_
