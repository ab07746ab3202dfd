#include "worker/shown/lone_inspection.h"

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// The process among the tasks that are inspected.
constexpr char kLone[] = "worker/0";
constexpr uint64_t kLoneIncarnation = 1;

}  // namespace

absl::StatusOr<wire::InspectResponse> LoneInspection::Inspect(
    const wire::InspectRequest& request, std::vector<std::string> others) {
  std::vector<std::string> present = std::move(others);
  present.insert(present.begin(), kLone);
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(
      inspections_.Inspect(request, present, clock_.Now()).status());
  ShowItself();
  return inspections_.Inspect(request, present, clock_.Now());
}

void LoneInspection::Exchange(absl::string_view task,
                              const wire::HeartbeatRequest& request,
                              wire::HeartbeatResponse& answer) {
  absl::MutexLock lock(&mu_);
  inspections_.Exchange(task, request.task().incarnation(), request,
                        clock_.Now(), answer);
}

// Until all that it has is shown, or nothing is there yet.
void LoneInspection::ShowItself() {
  do {
    wire::HeartbeatRequest shown;
    own_.Report(shown);
    wire::HeartbeatResponse asked;
    const absl::Time now = clock_.Now();
    inspections_.Exchange(kLone, kLoneIncarnation, shown, now, asked);
    own_.Heard(asked, now, now);
  } while (own_.HasMore());
}

}  // namespace parasol
