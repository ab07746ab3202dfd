#include "tool/why_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "tool/asked_chief.h"
#include "tool/status/why_text.h"

namespace parasol {
namespace {

constexpr char kWhyUsage[] =
    "Says in a paragraph what bounds a job now: a task that is stopped, slow "
    "or not there, a disk, a link between two tasks, one hot row, the "
    "evaluator, "
    "or nobody: then the workers compute. It names who waits for whom, and "
    "since when. CHIEF is the chief's address as in TF_CONFIG.\n"
    "\n"
    "  parasol why CHIEF\n"
    "\n"
    "  parasol why chief-0:2222\n"
    "\n"
    "Exit code: 0 the chief has answered; 2 bad flags, or a server that is no "
    "chief; 138 no answer.";

absl::StatusOr<int> RunWhy(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CHIEF"));
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> chief,
                   ChiefToAsk(arguments[0]));
  ASSIGN_OR_RETURN(const wire::JobStatus status, AskChief(*chief));
  fputs(WhyText(status).c_str(), stdout);
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace

Command WhyCommand() {
  return {.name = "why",
          .summary = "says what bounds a cluster's job now",
          .usage = kWhyUsage,
          .flags = {"timeout", "tls_certificate", "tls_key", "tls_ca",
                    "token_file", "insecure"},
          .run = [](const std::vector<std::string>& arguments) {
            const absl::StatusOr<int> code = RunWhy(arguments);
            return code.ok() ? *code : ExitWith(code.status());
          }};
}

}  // namespace parasol
