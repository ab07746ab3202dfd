#include "tool/loaded_model.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/job/job_file.h"
#include "tool/data_dir_flag.h"
#include "tool/job_flags.h"
#include "tool/model_flags.h"

namespace parasol {

absl::StatusOr<LoadedModel> LoadModel(const std::string& path,
                                      const std::vector<std::string>& overrides,
                                      const EvaluatedModel::Options& options) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.path, CheckpointAt(path));
  ASSIGN_OR_RETURN(const LoadedJob job,
                   JobOfCheckpoint(loaded.path, overrides));
  if (!job.job.has_eval()) {
    return absl::InvalidArgumentError(
        absl::StrCat(loaded.path,
                     ": its job has no eval data set; say which with "
                     "--set=eval…"));
  }
  ASSIGN_OR_RETURN(loaded.model, EvaluatedModel::Create(job.job, options));
  ASSIGN_OR_RETURN(loaded.manifest, loaded.model->Load(loaded.path));
  loaded.outputs = job.graph.output_width();
  return loaded;
}

absl::StatusOr<LoadedModel> LoadModelByFlags(const std::string& path) {
  const std::string data_dir = absl::GetFlag(FLAGS_data_dir);
  ASSIGN_OR_RETURN(const CheckpointModel::Options compute,
                   ModelOptionsFromFlags());
  RETURN_IF_ERROR(CheckComputeFlags({.data_dir = data_dir}));
  return LoadModel(path, absl::GetFlag(FLAGS_set).values,
                   {.data_dir = data_dir, .compute = compute});
}

}  // namespace parasol
