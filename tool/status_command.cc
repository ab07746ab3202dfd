#include "tool/status_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/client/chief_client.h"
#include "deploy/local/evaluation_line.h"
#include "deploy/local/file_tail.h"
#include "tool/flag/flag_checks.h"
#include "tool/json_flag.h"
#include "tool/status/asked_chief.h"
#include "tool/status/status_report.h"

ABSL_FLAG(bool, watch, false,
          "Ask again and again, until the job is over or no chief answers.");
ABSL_FLAG(absl::Duration, interval, absl::Seconds(2),
          "Time between two questions of --watch.");

namespace parasol {
namespace {

constexpr char kStatusUsage[] =
    "Shows what the chief of a cluster says of its job: the phase, the step, "
    "the rate, what is waited for, every task with its state and addresses, "
    "the last checkpoint, and the last and the best evaluation where the "
    "checkpoint directory can be read from here. CHIEF is the chief's address "
    "as in "
    "TF_CONFIG.\n"
    "\n"
    "  parasol status CHIEF\n"
    "\n"
    "  parasol status chief-0:2222\n"
    "  parasol status chief-0:2222 --watch\n"
    "  parasol status chief-0:2222 --json\n"
    "\n"
    "With --watch rates and the time since a task has been in its state are "
    "shown, too; --json then prints one line for each answer. Where stdout is "
    "no terminal, a line is printed when something has changed: the phase, a "
    "task's state, what bounds the job, the checkpoint.\n"
    "\n"
    "Exit code: 0 the chief has answered; 1 the job has failed; 2 bad flags, "
    "or a server that is no chief; 138 no answer.";

constexpr int64_t kTailBytes = 1 << 20;

// The evaluations beside the checkpoint, if this machine sees them.
StatusReport::Evaluations EvaluationsOf(const wire::JobStatus& status) {
  StatusReport::Evaluations evaluations;
  if (status.checkpoint().empty()) return evaluations;
  const std::filesystem::path directory =
      std::filesystem::path(status.checkpoint()).parent_path();
  evaluations.newest = LastEvaluationLine(
      FileTail((directory / "evaluations.jsonl").string(), kTailBytes));
  const absl::StatusOr<BestCheckpoint> best = ReadBest(directory.string());
  if (best.ok()) evaluations.best = *best;
  return evaluations;
}

void Print(StatusReport& report, bool is_watched) {
  if (absl::GetFlag(FLAGS_json)) {
    fputs(report.ToJson().c_str(), stdout);
  } else if (is_watched && !isatty(STDOUT_FILENO)) {
    fputs(report.TakeChange().c_str(), stdout);
  } else {
    // A terminal shows the newest answer alone.
    constexpr char kClear[] = "\x1b[H\x1b[2J";
    if (is_watched) fputs(kClear, stdout);
    fputs(report.ToText().c_str(), stdout);
  }
  fflush(stdout);
}

// Asks until the job is over or a signal comes.
absl::Status Watch(ChiefClient& chief, StatusReport& report) {
  TerminationSignal signal;
  absl::Mutex mu;
  bool is_stopped = false;
  signal.OnSignal([&] {
    absl::MutexLock lock(&mu);
    is_stopped = true;
  });
  while (!report.IsOver()) {
    {
      absl::MutexLock lock(&mu);
      if (Clock::Real().AwaitWithTimeout(mu, absl::Condition(&is_stopped),
                                         absl::GetFlag(FLAGS_interval))) {
        break;
      }
    }
    ASSIGN_OR_RETURN(const wire::JobStatus status, AskChief(chief));
    report.Observe(status, EvaluationsOf(status), Clock::Real().Now());
    Print(report, /*is_watched=*/true);
  }
  signal.Disarm();
  return absl::OkStatus();
}

absl::StatusOr<int> RunStatus(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CHIEF"));
  const std::string& address = arguments[0];
  RETURN_IF_ERROR(CheckDuration("interval", absl::GetFlag(FLAGS_interval)));
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> chief,
                   ChiefToAsk(address));
  const bool is_watched = absl::GetFlag(FLAGS_watch);
  ASSIGN_OR_RETURN(const wire::JobStatus status, AskChief(*chief));
  StatusReport report;
  report.Observe(status, EvaluationsOf(status), Clock::Real().Now());
  Print(report, is_watched);
  if (is_watched) {
    RETURN_IF_ERROR(Watch(*chief, report));
  }
  return static_cast<int>(report.HasFailed() ? ExitCode::kPermanentFailure
                                             : ExitCode::kDone);
}

}  // namespace

Command StatusCommand() {
  return {.name = "status",
          .summary = "shows what a cluster's chief says of its job",
          .usage = kStatusUsage,
          .flags = {"json", "watch", "interval", "timeout", "tls_certificate",
                    "tls_key", "tls_ca", "token_file", "insecure"},
          .run = [](const std::vector<std::string>& arguments) {
            const absl::StatusOr<int> code = RunStatus(arguments);
            return code.ok() ? *code : ExitWith(code.status());
          }};
}

}  // namespace parasol
