#include "coordinator/task_message.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "coordinator/task_id.h"

namespace parasol {
namespace {

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

}  // namespace

absl::Status CheckTask(const wire::Task& task) {
  return CheckText("the task's role", task.role());
}

absl::Status CheckMessage(const wire::RegisterRequest& request) {
  absl::Status status = CheckTask(request.task());
  status.Update(CheckText("run_id", request.run_id()));
  status.Update(CheckText("metrics_address", request.metrics_address()));
  status.Update(CheckText("process", request.process()));
  return status;
}

absl::Status CheckMessage(const wire::ClaimStepsRequest& request) {
  absl::Status status = CheckTask(request.task());
  if (status.ok() && request.task().role() != "worker") {
    return absl::InvalidArgumentError(
        absl::StrCat(TaskId::Of(request.task()).ToString(),
                     " claims steps; only workers do"));
  }
  return status;
}

std::string FailureLine(absl::string_view message) {
  std::string line(message.substr(0, kMaxFailureText));
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return line;
}

}  // namespace parasol
