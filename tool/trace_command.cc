#include "tool/trace_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/rpc/proto_duration.h"
#include "storage/tensor_files/staged_file.h"
#include "tool/output_flag.h"
#include "tool/status/asked_chief.h"
#include "tool/status/asked_inspection.h"
#include "tool/status/trace_json.h"

ABSL_FLAG(int64_t, steps, 20, "Whole steps of each worker that a trace has.");

namespace parasol {
namespace {

constexpr int64_t kMostSteps = 100'000;
// Longest time of a trace, and what the tasks have for beginning and sending.
constexpr absl::Duration kTraceLimit = absl::Minutes(1);
constexpr absl::Duration kTraceRest = absl::Seconds(25);

constexpr char kTraceUsage[] =
    "Records what all tasks of a cluster do for some steps, at one time, and "
    "writes it as a trace that https://ui.perfetto.dev opens, on the chief's "
    "clock: each worker's steps with their input, pull, compute, push and "
    "wait, what each of its streams has ps do, what each ps carries out, loads "
    "and checkpoints, claims at the chief, evaluations. A minute at most. "
    "CHIEF is the chief's address as in TF_CONFIG, or the --status_address of "
    "a worker without a cluster or of a program.\n"
    "\n"
    "  parasol trace CHIEF --output=FILE [--steps=20]\n"
    "\n"
    "  parasol trace chief-0:2222 --steps=20 --output=trace.json\n"
    "\n"
    "Exit code: 0 all tasks have shown what they did; 1 some have not: the "
    "trace has the others; 2 bad flags, or a server that is no chief; 138 no "
    "answer, or another trace or question for stacks goes on: ask again.";

absl::Status CheckTraceFlags() {
  const int64_t steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1 || steps > kMostSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", steps, ": must be from 1 to ", kMostSteps));
  }
  if (absl::GetFlag(FLAGS_output).empty()) {
    return absl::InvalidArgumentError(
        "--output: is missing; it names the file of the trace");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunTrace(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CHIEF"));
  RETURN_IF_ERROR(CheckTraceFlags());
  const std::string path = absl::GetFlag(FLAGS_output);
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> chief,
                   ChiefToAsk(arguments[0]));
  // Nobody waits for a trace that can't be written.
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  wire::InspectRequest request;
  wire::Inspection& asked = *request.mutable_inspection();
  asked.set_kind(wire::Inspection::TRACE);
  asked.set_steps(absl::GetFlag(FLAGS_steps));
  *asked.mutable_limit() = ToProto(kTraceLimit);
  ASSIGN_OR_RETURN(const InspectedTasks inspected,
                   AskForInspection(*chief, request, kTraceLimit + kTraceRest));
  TraceSummary summary;
  RETURN_IF_ERROR(file.Append(TraceJson(inspected.tasks, summary)));
  RETURN_IF_ERROR(file.Commit());
  fputs(TraceLine(summary, path, inspected.missing).c_str(), stdout);
  return static_cast<int>(inspected.missing.empty()
                              ? ExitCode::kDone
                              : ExitCode::kPermanentFailure);
}

}  // namespace

Command TraceCommand() {
  return {.name = "trace",
          .summary = "records what a cluster's tasks do for some steps",
          .usage = kTraceUsage,
          .flags = {"output", "steps", "timeout", "tls_certificate", "tls_key",
                    "tls_ca", "token_file", "insecure"},
          .run = [](const std::vector<std::string>& arguments) {
            const absl::StatusOr<int> code = RunTrace(arguments);
            return code.ok() ? *code : ExitWith(code.status());
          }};
}

}  // namespace parasol
