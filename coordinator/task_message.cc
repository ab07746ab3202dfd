#include "coordinator/task_message.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/steps/step_ledger.h"
#include "coordinator/task_id.h"

namespace parasol {
namespace {

constexpr int kMaxPort = 65535;

absl::Status CheckText(absl::string_view name, absl::string_view text) {
  if (text.size() > kMaxTaskText) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", text.size(), " bytes, of at most ", kMaxTaskText));
  }
  if (std::any_of(text.begin(), text.end(),
                  [](unsigned char c) { return absl::ascii_iscntrl(c); })) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has a control character"));
  }
  return absl::OkStatus();
}

// Returns OK if the text is empty, or a port follows its last colon.
absl::Status CheckPort(absl::string_view address) {
  RETURN_IF_ERROR(CheckText("collective_address", address));
  int port = 0;
  if (address.empty() ||
      (absl::StrContains(address, ':') &&
       absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port) &&
       port >= 0 && port <= kMaxPort)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("collective_address \"", address, "\" is not host:port"));
}

absl::Status CheckTotal(const wire::Task& task, absl::string_view name,
                        int64_t total) {
  if (total >= 0 && total <= StepLedger::kMaxTotal) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      TaskId::Of(task).ToString(), ": ", name, " is ", total,
      ", not from 0 to ", StepLedger::kMaxTotal, "; start this process again"));
}

absl::Status CheckIsWorker(const wire::Task& task, absl::string_view does) {
  RETURN_IF_ERROR(CheckTask(task));
  if (task.role() == "worker") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      TaskId::Of(task).ToString(), " ", does, "; only workers do"));
}

}  // namespace

absl::Status CheckTask(const wire::Task& task) {
  return CheckText("the task's role", task.role());
}

absl::Status CheckMessage(const wire::RegisterRequest& request) {
  absl::Status status = CheckTask(request.task());
  status.Update(CheckText("run_id", request.run_id()));
  status.Update(CheckText("metrics_address", request.metrics_address()));
  status.Update(CheckText("process", request.process()));
  status.Update(CheckPort(request.collective_address()));
  status.Update(
      CheckTotal(request.task(), "completed_steps", request.completed_steps()));
  return status;
}

absl::Status CheckMessage(const wire::ClaimStepsRequest& request) {
  absl::Status status = CheckIsWorker(request.task(), "claims steps");
  status.Update(
      CheckTotal(request.task(), "completed_steps", request.completed_steps()));
  status.Update(
      CheckTotal(request.task(), "started_steps", request.started_steps()));
  status.Update(
      CheckTotal(request.task(), "granted_steps", request.granted_steps()));
  status.Update(
      CheckTotal(request.task(), "pushed_steps", request.pushed_steps()));
  return status;
}

absl::Status CheckMessage(const wire::GetPlacementRequest& request) {
  return CheckIsWorker(request.task(), "asks where the variables are");
}

absl::Status CheckMessage(const wire::ReportFailureRequest& request) {
  return CheckIsWorker(request.task(), "reports a failure");
}

std::string FailureLine(absl::string_view message) {
  std::string line(message.substr(0, kMaxFailureText));
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return line;
}

}  // namespace parasol
