#ifndef PARASOL_TOOL_LOADED_MODEL_H_
#define PARASOL_TOOL_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/model/evaluated_model.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// A checkpoint's model, ready to compute on the job's eval data set.
struct LoadedModel {
  std::string path = {};  // the checkpoint's directory
  durable::CheckpointManifest manifest = {};
  int64_t outputs = 0;  // elements of an example's output
  std::unique_ptr<EvaluatedModel> model = nullptr;
};

// Loads the checkpoint at `path`, as CheckpointAt() understands it, for its own
// job with `overrides` ("eval.batch_size=100").
//   InvalidArgument  the job has no eval data set, or can't be used.
//   any other        as for EvaluatedModel.
absl::StatusOr<LoadedModel> LoadModel(const std::string& path,
                                      const std::vector<std::string>& overrides,
                                      const EvaluatedModel::Options& options);

// Loads the model that --data_dir, --set and the flags of model_flags.h say.
absl::StatusOr<LoadedModel> LoadModelByFlags(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_TOOL_LOADED_MODEL_H_
