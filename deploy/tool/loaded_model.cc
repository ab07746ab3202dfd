#include "deploy/tool/loaded_model.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/job/job_file.h"
#include "deploy/tool/checkpoint/checkpoint_argument.h"
#include "deploy/tool/job_flags.h"
#include "storage/checkpoint_reader.h"

ABSL_FLAG(std::string, data_dir, ".",
          "Where the files are that the job's data sets name.");
ABSL_FLAG(std::string, device, "auto",
          "Where to compute: auto (a CUDA device if there is one), cpu, "
          "cuda:N.");
ABSL_FLAG(int, threads, 1, "Number of CPU threads that compute.");

namespace parasol {

absl::StatusOr<LoadedModel> LoadModel(const std::string& path,
                                      const std::vector<std::string>& overrides,
                                      const EvaluatedModel::Options& options) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.path, CheckpointAt(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(loaded.path));
  ASSIGN_OR_RETURN(const LoadedJob job,
                   LoadJob(checkpoint->manifest().job(), overrides),
                   _ << loaded.path);
  if (!job.job.has_eval()) {
    return absl::InvalidArgumentError(
        absl::StrCat(loaded.path,
                     ": its job has no eval data set; say which with "
                     "--set=eval…"));
  }
  ASSIGN_OR_RETURN(loaded.model, EvaluatedModel::Create(job.job, options));
  ASSIGN_OR_RETURN(loaded.manifest, loaded.model->Load(loaded.path));
  loaded.outputs = job.graph.outputs();
  return loaded;
}

absl::StatusOr<LoadedModel> LoadModelByFlags(const std::string& path) {
  const EvaluatedModel::Options options = {
      .data_dir = absl::GetFlag(FLAGS_data_dir),
      .device = absl::GetFlag(FLAGS_device),
      .threads = absl::GetFlag(FLAGS_threads)};
  RETURN_IF_ERROR(CheckComputeFlags({.data_dir = options.data_dir,
                                     .device = options.device,
                                     .threads = options.threads}));
  return LoadModel(path, absl::GetFlag(FLAGS_set).values, options);
}

}  // namespace parasol
