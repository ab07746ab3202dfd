#include "cluster/client/ended_job.h"

#include "absl/time/time.h"
#include "base/log.h"
#include "cluster/checkpoint/final_checkpoint.h"

namespace parasol {
namespace {

constexpr absl::Duration kUnknownLogInterval = absl::Seconds(30);

}  // namespace

std::optional<wire::RegisterResponse> RegistrationOfEndedJob(
    const std::string& directory) {
  const auto last = FindEndedJob(directory);
  if (!last) {
    LOG_EVERY(INFO, kUnknownLogInterval)
        << "no chief has answered since this task began: if the job is "
           "complete, its chief has ended, and this task need not be started "
           "again";
    return std::nullopt;
  }
  LOG(INFO) << "no chief answers, and the last checkpoint of job "
            << last->job().name() << ", of step " << last->global_step()
            << ", is in " << directory << ": the job is complete";
  wire::RegisterResponse registration;
  *registration.mutable_job() = last->job();
  registration.set_run_id(last->run_id());
  registration.set_checkpoint_directory(directory);
  return registration;
}

}  // namespace parasol
