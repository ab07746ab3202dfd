#ifndef PARASOL_DEPLOY_RESOLVER_PROCESS_PLACES_H_
#define PARASOL_DEPLOY_RESOLVER_PROCESS_PLACES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/resolver/hosts.h"

namespace parasol {

// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;

// The processes that were started together, and which of them this one is.
//
// Processes are numbered from 0, host by host: hosts[0] has the first ones.
struct ProcessPlaces {
  std::vector<Host> hosts;
  int rank = 0;
  // The variable or flag that has the number of processes, for errors.
  std::string size_source;

  int size() const;
};

// Reads the variables that srun sets for a step, or for the job where there is
// no step's.
//   InvalidArgument  a variable is missing, has a value that can't be or does
//                    not fit the others, or the processes are not numbered host
//                    by host; the message names variable and value.
absl::StatusOr<ProcessPlaces> PlacesFromSlurm(const Variables& variables);

// Reads the variables that mpirun sets. `hosts` are mpirun's, with its slots;
// the processes fill them one after the other.
//   InvalidArgument  as above, or the hosts have too few slots.
absl::StatusOr<ProcessPlaces> PlacesFromOpenMpi(const Variables& variables,
                                                std::vector<Host> hosts);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_RESOLVER_PROCESS_PLACES_H_
