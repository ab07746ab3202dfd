// The part of the chief's server that shows what tasks do.
#include <string>
#include <vector>

#include "chief/chief_server.h"

namespace parasol {
namespace {

// The chief among the tasks that are inspected.
constexpr char kSelf[] = "chief/0";
constexpr uint64_t kSelfIncarnation = 1;

}  // namespace

absl::StatusOr<wire::InspectResponse> ChiefServer::Inspect(
    const wire::InspectRequest& request) {
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_.Now();
  std::vector<std::string> present = {kSelf};
  const wire::JobStatus status = coordinator_.Status(now);
  for (const wire::TaskStatus& task : status.task()) {
    if (!task.alive()) continue;
    present.push_back(TaskId::Of(task.task()).ToString());
  }
  return inspections_.Inspect(request, present, now);
}

// The chief's tasks hear what they are asked with their heartbeats; it has
// none.
void ChiefServer::ShowItself() {
  wire::HeartbeatRequest shown;
  self_.Report(shown);
  wire::HeartbeatResponse asked;
  const absl::Time now = clock_.Now();
  {
    absl::MutexLock lock(&mu_);
    inspections_.Exchange(kSelf, kSelfIncarnation, shown, now, asked);
  }
  self_.Heard(asked, now, now);
}

void ChiefServer::Trace(const char* name, const char* track, absl::Time begin) {
  if (!self_.recorder().is_on()) return;
  self_.recorder().Add(
      {.name = name, .track = track, .begin = begin, .end = clock_.Now()});
}

}  // namespace parasol
