#include "tool/check_command.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/check/check_job_and_data.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/job/check_job.h"
#include "storage/tensor_files/staged_file.h"
#include "tool/check/adapted_text.h"
#include "tool/cluster_size_flags.h"
#include "tool/data_dir_flag.h"
#include "tool/job_flags.h"
#include "tool/json_flag.h"
#include "tool/output_flag.h"

ABSL_FLAG(bool, adapt, false,
          "Write the job with mean and stddev of its numeric columns, and "
          "vocabularies of its columns of texts, to --output.");
ABSL_FLAG(int64_t, examples, 1'000'000,
          "Statistics are of this number of examples of each data set, the "
          "first ones.");
ABSL_FLAG(bool, data, true, "Look at the data, too; --nodata: the job alone.");

namespace parasol {
namespace {

constexpr char kCheckUsage[] =
    "Checks a job file, and its data: reports all faults at once, each as one "
    "line with its place and what may be meant; then the columns of the data, "
    "the first examples as the model sees them, the balance of the labels, the "
    "step at which the job ends, and the memory that each role needs.\n"
    "\n"
    "  parasol check JOB --data_dir=DIR [--set=PATH=VALUE]\n"
    "\n"
    "  parasol check ads.textproto --nodata\n"
    "  parasol check ads.textproto --data_dir=/data\n"
    "  parasol check ads.textproto --data_dir=/data --ps=4 --workers=16 "
    "--json\n"
    "  parasol check ads.textproto --data_dir=/data --adapt "
    "--output=ads.normalized.textproto\n"
    "\n"
    "Exit code: 0 no faults (warnings may be there); 2 faults, or bad flags.";

constexpr int kMaxTasks = 4096;

// What a check without --ps and --workers is for.
int Ps() { return absl::GetFlag(FLAGS_ps) == 0 ? 1 : absl::GetFlag(FLAGS_ps); }
int Workers() { return absl::GetFlag(FLAGS_workers).value_or(1); }

absl::Status CheckNumbers() {
  const auto check = [](const char* flag, int64_t value, int64_t high) {
    if (value >= 1 && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, "=", value, ": must be from 1 to ", high));
  };
  RETURN_IF_ERROR(
      check("examples", absl::GetFlag(FLAGS_examples), int64_t{1} << 40));
  RETURN_IF_ERROR(check("ps", Ps(), kMaxTasks));
  RETURN_IF_ERROR(check("workers", Workers(), kMaxTasks));
  const bool adapts = absl::GetFlag(FLAGS_adapt);
  if (adapts == absl::GetFlag(FLAGS_output).empty()) {
    return absl::InvalidArgumentError(
        adapts ? "--adapt: needs --output=FILE, where the job is written"
               : "--output: needs --adapt, which says what to write");
  }
  if (adapts && !absl::GetFlag(FLAGS_data)) {
    return absl::InvalidArgumentError(
        "--adapt: needs the data, which --nodata leaves out");
  }
  return absl::OkStatus();
}

absl::Status WriteAdapted(const CheckedJob& job, const JobReport& report) {
  const std::string path = absl::GetFlag(FLAGS_output);
  std::vector<std::string> left_out;
  const std::string text = AdaptedText(job, report, left_out);
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  RETURN_IF_ERROR(file.Append(text));
  RETURN_IF_ERROR(file.Commit());
  for (const std::string& field : left_out) {
    fprintf(stderr, "%s: not by itself in the job file, so not filled in\n",
            field.c_str());
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunCheck(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "JOB"));
  RETURN_IF_ERROR(CheckNumbers());
  const CheckOptions options = {.data_dir = absl::GetFlag(FLAGS_data)
                                                ? absl::GetFlag(FLAGS_data_dir)
                                                : "",
                                .max_examples = absl::GetFlag(FLAGS_examples),
                                .workers = Workers(),
                                .ps = Ps()};
  if (!options.data_dir.empty()) {
    RETURN_IF_ERROR(CheckComputeFlags({.data_dir = options.data_dir}));
  }
  ASSIGN_OR_RETURN(
      CheckedJob job,
      CheckedJob::Read(arguments[0], absl::GetFlag(FLAGS_set).values,
                       absl::GetFlag(FLAGS_data_dir)));
  const JobReport report = CheckJobAndData(job, options);
  const bool is_good = report.faults.empty();
  if (is_good && absl::GetFlag(FLAGS_adapt)) {
    RETURN_IF_ERROR(WriteAdapted(job, report));
  }
  if (absl::GetFlag(FLAGS_json)) {
    fputs(ToJson(report).c_str(), stdout);
  } else {
    fputs(ToText(report).c_str(), stdout);
    for (const std::string& fault : report.faults) {
      fprintf(stderr, "%s\n", fault.c_str());
    }
  }
  return static_cast<int>(is_good ? ExitCode::kDone
                                  : ExitCode::kBadConfiguration);
}

}  // namespace

Command CheckCommand() {
  return {.name = "check",
          .summary = "reports all faults of a job and its data",
          .usage = kCheckUsage,
          .flags = {"data_dir", "data_cache_dir", "data", "set", "json",
                    "adapt", "output", "examples", "ps", "workers"},
          .run = [](const std::vector<std::string>& arguments) {
            const absl::StatusOr<int> code = RunCheck(arguments);
            return code.ok() ? *code : ExitWith(code.status());
          }};
}

}  // namespace parasol
