#ifndef PARASOL_LOOP_PEERS_PROGRAM_DESCRIPTION_H_
#define PARASOL_LOOP_PEERS_PROGRAM_DESCRIPTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// Returns what must be the same in all processes of a program, a line each: the
// number of replicas, each variable with its shape and its optimizer's slots,
// and the lines `parts`.
std::string DescribeProgram(ParameterStore& store, int replicas,
                            const std::vector<std::string>& parts);

// Compares the descriptions of all processes, by rank.
//   InvalidArgument  names the first line in which one differs from rank 0, and
//                    both processes.
absl::Status CheckSameProgram(const std::vector<std::string>& descriptions);

// Checks that the chief's job stands for this worker's program, by its model,
// optimizers, seed and end.
//   InvalidArgument  names the fields that differ.
absl::Status CheckSameProgram(const job::Job& of_chief, const job::Job& own);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PROGRAM_DESCRIPTION_H_
