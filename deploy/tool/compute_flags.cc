#include "deploy/tool/compute_flags.h"

#include "absl/flags/flag.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/compute_flags.h"

ABSL_FLAG(std::string, device, "auto",
          "Where to compute: auto (a CUDA device if there is one), cpu, "
          "cuda:N.");
ABSL_FLAG(int, threads, 1, "Number of CPU threads that compute.");

namespace parasol {

absl::StatusOr<CheckpointModel::Options> ModelOptionsFromFlags() {
  const CheckpointModel::Options options = {
      .device = absl::GetFlag(FLAGS_device),
      .threads = absl::GetFlag(FLAGS_threads)};
  RETURN_IF_ERROR(CheckComputeFlags(
      {.device = options.device, .threads = options.threads}));
  return options;
}

}  // namespace parasol
