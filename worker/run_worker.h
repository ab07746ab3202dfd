#ifndef PARASOL_WORKER_RUN_WORKER_H_
#define PARASOL_WORKER_RUN_WORKER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// The flags of the `worker` binary.
struct RunWorkerOptions {
  std::string data_dir;
  std::string device;
  int threads = 1;
  std::string metrics_address;
  absl::Duration chief_timeout;
  absl::Duration ps_timeout;
  // For a worker that is its own chief.
  std::string job_file;
  std::vector<std::string> overrides;
  std::string checkpoint_directory;
  std::string chief_binary;
};

// Everything that the binary does after its flags are parsed: a worker of a
// cluster; with a chief beside it where it is worker 0 of a cluster without
// one; or, without a cluster, a whole training in this process. Returns what
// the process ends with (base/process.h, ExitWith).
absl::Status RunWorker(const TaskConfig& config,
                       const RunWorkerOptions& options,
                       TerminationSignal& signal);

}  // namespace parasol

#endif  // PARASOL_WORKER_RUN_WORKER_H_
