#include "worker/checked_data.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/check/start_check.h"
#include "cluster/check/step_size.h"

namespace parasol {

absl::Status CheckWorkerData(const job::Job& job, const Graph& graph,
                             const std::string& data_dir, ChiefSession& session,
                             absl::Duration limit,
                             const std::function<bool()>& cancelled) {
  const StartReport report = CheckTrainingData(job, graph, data_dir);
  for (const std::string& line : report.samples) LOG(INFO) << line;
  for (const std::string& line : report.warnings) LOG(WARNING) << line;
  if (report.faults.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(session.Await(
      [](const wire::HeartbeatResponse& state) {
        return !state.run_id().empty();
      },
      limit, cancelled));
  if (session.state().global_step() == 0) {
    return absl::InvalidArgumentError(absl::StrJoin(report.faults, "; "));
  }
  for (const std::string& line : report.faults) LOG(WARNING) << line;
  return absl::OkStatus();
}

void LogTraining(const job::Job& job, const std::string& devices,
                 int64_t examples, int replicas) {
  const std::string large = LargeStepWarning(job, examples);
  if (!large.empty()) LOG(WARNING) << large;
  LOG(INFO) << "training on " << devices << " with " << examples << " examples"
            << (replicas > 0 ? absl::StrCat(" in ", replicas, " replicas")
                             : "");
}

}  // namespace parasol
