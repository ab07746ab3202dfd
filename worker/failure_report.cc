#include "worker/failure_report.h"

#include <string>

#include "base/log.h"
#include "base/process.h"

namespace parasol {
namespace {

// Further tries to report a failure to a chief that does not know this task.
constexpr int kFailureReports = 10;
constexpr absl::Duration kFailureReportInterval = absl::Milliseconds(500);

}  // namespace

void ReportFailure(ChiefClient& chief, const wire::Task& task,
                   const absl::Status& failure, bool has_begun,
                   const std::function<void(absl::Duration)>& wait) {
  wire::ReportFailureRequest request;
  *request.mutable_task() = task;
  const bool is_configuration =
      ExitCodeFor(failure) == ExitCode::kBadConfiguration;
  request.set_code(static_cast<int>(has_begun && is_configuration
                                        ? absl::StatusCode::kFailedPrecondition
                                        : failure.code()));
  request.set_message(std::string(failure.message()));
  absl::Status reported = chief.ReportFailure(request);
  for (int i = 0; i < kFailureReports && absl::IsNotFound(reported); ++i) {
    wait(kFailureReportInterval);
    reported = chief.ReportFailure(request);
  }
  if (!reported.ok()) {
    LOG(WARNING) << "the chief was not told of the failure: "
                 << reported.message();
  }
}

}  // namespace parasol
