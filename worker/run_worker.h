#ifndef PARASOL_WORKER_RUN_WORKER_H_
#define PARASOL_WORKER_RUN_WORKER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/trust.h"

namespace parasol {

// The flags of the `worker` binary.
struct RunWorkerOptions {
  std::string data_dir;
  std::string data_cache_dir;
  std::string device;
  int threads = 1;
  std::string metrics_address;
  absl::Duration chief_timeout;
  absl::Duration ps_timeout;
  // The keys of this task, null without any, and the flags that give them.
  std::shared_ptr<const Trust> trust;
  std::vector<std::string> trust_flags;
  std::optional<CertificateFiles> certificates;
  // Options of a worker that is its own chief.
  std::string job_file;
  std::vector<std::string> overrides;
  std::string checkpoint_directory;
  std::string chief_binary;
  // The chief's --checkpoint_timeout, which is also a lone worker's, and
  // --worker_timeout; 0: the default.
  absl::Duration checkpoint_timeout;
  absl::Duration worker_timeout;
  // Port at which a worker of a cluster without ps takes its peers'
  // connections; 0: the port of its address in the cluster or, for worker 0,
  // whose chief has that one, a port that the system chooses.
  int collective_port = 0;
  // Address host:port at which a worker without a cluster answers for its
  // job's status as a chief does; empty: nowhere.
  std::string status_address;
};

// Does everything that the `worker` binary does after its flags are parsed. A
// task of a cluster runs as a worker; worker 0 of a cluster without a chief
// also runs a chief beside itself. A task without a cluster runs a whole
// training in this process. Checks the flags before it contacts any peer.
// Returns the status for ExitWith() (base/process.h).
absl::Status RunWorker(const TaskConfig& config,
                       const RunWorkerOptions& options,
                       TerminationSignal& signal);

// Prints the names of this machine's devices, for --list_devices: one per line,
// as --device and a job's strategy take them.
//   Internal  stdout can't be written.
absl::Status ListDevices();

}  // namespace parasol

#endif  // PARASOL_WORKER_RUN_WORKER_H_
