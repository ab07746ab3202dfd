#ifndef PARASOL_LOOP_PEERS_PEERS_OF_H_
#define PARASOL_LOOP_PEERS_PEERS_OF_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/trust_settings.h"
#include "loop/peers/peers.h"
#include "loop/peers/program_settings.h"

namespace parasol {

// What a process of a program says of itself, by its flags.
struct ProcessSettings {
  int replicas = 1;
  ProgramSettings program = {};
  TrustSettings trust = {};
  // Time for which a process that is missing, or takes no part, is borne.
  absl::Duration peer_timeout = absl::Minutes(5);
};

// Returns the peers of the process that `config` describes: none without a
// cluster; the workers of a cluster without ps, of which one that is lost has
// the others start anew (StartAnew()), and main() runs again in them; or, in a
// cluster with ps, where workers are not in step, what a worker or the chief
// has of that.
//   InvalidArgument  the cluster has tasks that a program has no use for, or
//                    lacks the chief, or the keys are of no use.
//   Unimplemented    another strategy than parameter_server with ps.
absl::StatusOr<std::unique_ptr<Peers>> PeersOf(const TaskConfig& config,
                                               const ProcessSettings& settings);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PEERS_OF_H_
