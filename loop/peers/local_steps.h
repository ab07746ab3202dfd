#ifndef PARASOL_LOOP_PEERS_LOCAL_STEPS_H_
#define PARASOL_LOOP_PEERS_LOCAL_STEPS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// Reads the local steps of a program's workers, a text as a job has it within
// parameter_server { local_steps { … } }:
// "steps: 100 outer { sgd { learning_rate: 0.7 momentum: 0.9 } }".
//   InvalidArgument  it is none, or has what programs lack (fragments, steps
//                    beside exchanges), or its outer optimizer can't be used.
absl::StatusOr<job::LocalSteps> ParseLocalSteps(absl::string_view text);

// Returns InvalidArgument if an optimizer of a program can't make local steps.
absl::Status CheckMakesLocalSteps(const job::Optimizer& optimizer,
                                  const job::LocalSteps& local);

// Turns a program's job into one with local steps, as jobs are whose defaults
// are filled in: the job's optimizer moves to `local_steps.inner`, and `outer`
// takes its place. Optimizers of layers, which make local steps, too, become parameters
// of the layers: the ps apply `outer` to all variables.
void UseLocalSteps(const job::LocalSteps& local, job::Job& job);

// Returns InvalidArgument if the newest checkpoint of a directory was written
// with other steps than `local` has (null: none): its exchanges are counted as
// steps, so it stands for another number of iterations. What can't be read is
// no error here: who resumes passes over it, or says so.
absl::Status CheckGoesOnWith(const job::LocalSteps* local,
                             const std::string& checkpoint_directory);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_LOCAL_STEPS_H_
