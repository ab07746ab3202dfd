#include "tool/why_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "tool/status/asked_chief.h"
#include "tool/status/asked_inspection.h"
#include "tool/status/why_text.h"

ABSL_FLAG(
    std::string, stacks, "",
    "Task whose threads' stacks are shown, e.g. worker/3; all: the stacks "
    "of all tasks.");

namespace parasol {
namespace {

constexpr char kWhyUsage[] =
    "Says in a paragraph what bounds a job now: a task that is stopped, slow "
    "or not there, a disk, a link between two tasks, one hot row, the "
    "evaluator, "
    "or nobody: then the workers compute. It names who waits for whom, and "
    "since when. CHIEF is the chief's address as in TF_CONFIG, or the "
    "--status_address of a worker without a cluster or of a program.\n"
    "\n"
    "  parasol why CHIEF [--stacks=TASK]\n"
    "\n"
    "  parasol why chief-0:2222\n"
    "  parasol why chief-0:2222 --stacks=worker/3\n"
    "\n"
    "With --stacks=TASK, or --stacks=all, the stacks of the threads of that "
    "task, or of all, follow: the one that trains, evaluates, or has carried "
    "out an operation for the longest is the first, then those that run. "
    "Threads with one stack are shown together.\n"
    "\n"
    "Exit code: 0 the chief has answered; 1 a task has not shown its stacks; 2 "
    "bad flags, or a server that is no chief; 138 no answer, or a trace or "
    "another question for stacks goes on: ask again.";

// Time that a task has for hearing of it, with its next heartbeat, and sending
// them.
constexpr absl::Duration kStacksLimit = absl::Seconds(15);

absl::StatusOr<int> ShowStacks(ChiefClient& chief, const std::string& task) {
  wire::InspectRequest request;
  request.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  if (task != "all") request.set_task(task);
  ASSIGN_OR_RETURN(const InspectedTasks inspected,
                   AskForInspection(chief, request, kStacksLimit));
  fputs(StacksText(inspected.tasks, inspected.missing).c_str(), stdout);
  return static_cast<int>(inspected.missing.empty()
                              ? ExitCode::kDone
                              : ExitCode::kPermanentFailure);
}

absl::StatusOr<int> RunWhy(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CHIEF"));
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> chief,
                   ChiefToAsk(arguments[0]));
  ASSIGN_OR_RETURN(const wire::JobStatus status, AskChief(*chief));
  fputs(WhyText(status).c_str(), stdout);
  const std::string stacks = absl::GetFlag(FLAGS_stacks);
  if (!stacks.empty()) return ShowStacks(*chief, stacks);
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace

Command WhyCommand() {
  return {.name = "why",
          .summary = "says what bounds a cluster's job now",
          .usage = kWhyUsage,
          .flags = {"stacks", "timeout", "tls_certificate", "tls_key", "tls_ca",
                    "token_file", "insecure"},
          .run = [](const std::vector<std::string>& arguments) {
            const absl::StatusOr<int> code = RunWhy(arguments);
            return code.ok() ? *code : ExitWith(code.status());
          }};
}

}  // namespace parasol
