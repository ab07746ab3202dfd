#include "tool/status/asked_inspection.h"

#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(200);
constexpr absl::Duration kNameMissing = absl::Seconds(10);

uint64_t DrawNumber() {
  std::random_device device;
  return uint64_t{device()} << 32 | device() | 1;
}

absl::StatusOr<wire::InspectResponse> AskOnce(
    ChiefClient& chief, const wire::InspectRequest& request) {
  absl::StatusOr<wire::InspectResponse> answer = chief.Inspect(request);
  if (absl::IsCancelled(answer.status())) {
    return absl::UnavailableError(absl::StrCat(
        answer.status().message(), ": it ended while it was asked"));
  }
  // Another inspection goes on: it is over soon.
  if (absl::IsResourceExhausted(answer.status())) {
    return absl::UnavailableError(answer.status().message());
  }
  if (!absl::IsUnimplemented(answer.status())) return answer;
  return absl::InvalidArgumentError(
      absl::StrCat(answer.status().message(),
                   " (no chief, nor a worker without a cluster, or an older "
                   "one: none can be inspected)"));
}

// Asks without a kind: no other inspection begins if this one is gone.
absl::StatusOr<wire::InspectResponse> AskAgain(ChiefClient& chief,
                                               wire::InspectRequest request) {
  request.mutable_inspection()->set_kind(wire::Inspection::KIND_UNSPECIFIED);
  absl::StatusOr<wire::InspectResponse> answer = AskOnce(chief, request);
  // Not the operator's mistake.
  if (!absl::IsNotFound(answer.status())) return answer;
  return absl::UnavailableError(answer.status().message());
}

// Fetches all that one task has shown: of all tasks, it would be too much for
// one answer.
absl::StatusOr<wire::InspectedTask> Fetch(ChiefClient& chief,
                                          wire::InspectRequest request,
                                          const std::string& task) {
  request.set_task(task);
  ASSIGN_OR_RETURN(const wire::InspectResponse whole, AskAgain(chief, request));
  if (whole.task_size() == 1) return whole.task(0);
  return absl::UnavailableError(
      absl::StrCat("what ", task,
                   " has shown is gone, as its process is: ask "
                   "again"));
}

}  // namespace

absl::StatusOr<InspectedTasks> AskForInspection(ChiefClient& chief,
                                                wire::InspectRequest request,
                                                absl::Duration limit) {
  request.mutable_inspection()->set_number(DrawNumber());
  Clock& clock = Clock::Real();
  const absl::Time end = clock.Now() + limit;
  absl::Time named = clock.Now();
  ASSIGN_OR_RETURN(wire::InspectResponse answer, AskOnce(chief, request));
  while (answer.missing_task_size() > 0 && clock.Now() < end) {
    clock.Pause(kAskAgain);
    ASSIGN_OR_RETURN(answer, AskAgain(chief, request));
    if (clock.Now() - named < kNameMissing) continue;
    named = clock.Now();
    fprintf(stderr, "waiting for %s\n",
            absl::StrJoin(answer.missing_task(), ", ").c_str());
  }
  InspectedTasks inspected;
  inspected.missing.assign(answer.missing_task().begin(),
                           answer.missing_task().end());
  for (const wire::InspectedTask& task : answer.task()) {
    if (!request.task().empty()) {
      inspected.tasks.push_back(task);
      continue;
    }
    ASSIGN_OR_RETURN(wire::InspectedTask whole,
                     Fetch(chief, request, task.task()));
    inspected.tasks.push_back(std::move(whole));
  }
  return inspected;
}

}  // namespace parasol
