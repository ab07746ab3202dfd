#include "tool/init_command.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "storage/tensor_files/staged_file.h"
#include "tool/first_job/first_job.h"
#include "tool/first_job/table_survey.h"
#include "tool/flag/flag_checks.h"
#include "tool/output_flag.h"

ABSL_FLAG(std::string, label, "", "The column that is predicted.");
ABSL_FLAG(std::string, learn, "",
          "What is learned: binary, classes or regression. Default: what the "
          "label's values are like.");
ABSL_DECLARE_FLAG(int64_t, examples);

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr char kInitUsage[] =
    "Writes a first job for a table, a file of lines with values between "
    "commas, tabs, semicolons or bars: a small model of the columns that are "
    "of "
    "use, trained on four fifths of the lines and stopped by the others. "
    "Comments in the job say what was left out and why.\n"
    "\n"
    "  parasol init TABLE --label=COLUMN [--output=JOB.textproto]\n"
    "\n"
    "  parasol init customers.csv --label=left\n"
    "  parasol init houses.tsv --label=price --learn=regression "
    "--output=jobs/houses.textproto\n"
    "\n"
    "Without --output the job is TABLE's name with .textproto, here. A file "
    "that is there stays.\n"
    "\n"
    "Exit code: 0 done; 2 the table or the label is none, or bad flags.";

constexpr size_t kMaxNameBytes = 200;

absl::StatusOr<FirstTask> TaskFromFlag() {
  const std::string task = absl::GetFlag(FLAGS_learn);
  if (task.empty()) return FirstTask::kGuess;
  if (task == "binary") return FirstTask::kBinary;
  if (task == "classes") return FirstTask::kClasses;
  if (task == "regression") return FirstTask::kRegression;
  return absl::InvalidArgumentError(absl::StrCat(
      "--learn=", task, ": must be binary, classes or regression"));
}

// "customers" of "/data/customers.csv.gz", of characters that a job's name may
// have.
std::string NameOf(const std::string& table) {
  std::string name = fs::path(table).filename().string();
  name = name.substr(0, name.find('.', 1));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') {
      c = '_';
    }
  }
  name.resize(std::min(name.size(), kMaxNameBytes));
  return name.empty() ? "job" : name;
}

// A word as a shell reads it.
std::string ShellWord(const std::string& word) {
  for (const char c : word) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        absl::string_view("/._-+").find(c) != absl::string_view::npos) {
      continue;
    }
    return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
  }
  return word;
}

void SayWhatNext(const FirstJob& job, const TableSurvey& survey,
                 const std::string& table, const std::string& output) {
  const std::string parent = fs::path(table).parent_path().string();
  const std::string data_dir = ShellWord(parent.empty() ? "." : parent);
  std::string text = absl::StrCat(
      output, ": ", job.task, " with ", job.columns_used,
      job.columns_used == 1 ? " column of " : " columns of ", survey.records,
      survey.is_whole ? " lines\n" : " lines, the first ones\n");
  if (!job.note.empty()) absl::StrAppend(&text, "note: ", job.note, "\n");
  for (const std::string& column : job.left_out) {
    absl::StrAppend(&text, "left out: ", column, "\n");
  }
  if (survey.corrupt > 0) {
    absl::StrAppend(&text, "left out: ", survey.corrupt,
                    " lines with another number of values\n");
  }
  const std::string file = ShellWord(output);
  absl::StrAppend(&text, "next:\n  parasol check ", file,
                  " --data_dir=", data_dir, "\n  parasol-launch --job=", file,
                  " --data_dir=", data_dir, " --checkpoint_dir=$PWD/",
                  NameOf(table), ".model\n");
  fputs(text.c_str(), stdout);
}

absl::Status RunInit(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "TABLE"));
  const std::string& table = arguments[0];
  FirstJobOptions options = {.name = NameOf(table),
                             .file = fs::path(table).filename().string(),
                             .label = absl::GetFlag(FLAGS_label)};
  ASSIGN_OR_RETURN(options.task, TaskFromFlag());
  const int64_t examples = absl::GetFlag(FLAGS_examples);
  RETURN_IF_ERROR(CheckAtLeast("examples", examples, 1));
  std::string output = absl::GetFlag(FLAGS_output);
  if (output.empty()) output = absl::StrCat(options.name, ".textproto");
  std::error_code error;
  if (fs::exists(output, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        output, ": is there already; name another file with --output"));
  }
  ASSIGN_OR_RETURN(const TableSurvey survey, SurveyTable(table, examples));
  ASSIGN_OR_RETURN(const FirstJob job, MakeFirstJob(survey, options));
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(output));
  RETURN_IF_ERROR(file.Append(job.text));
  RETURN_IF_ERROR(file.Commit());
  SayWhatNext(job, survey, table, output);
  return absl::OkStatus();
}

}  // namespace

Command InitCommand() {
  return {.name = "init",
          .summary = "writes a first job for a table",
          .usage = kInitUsage,
          .flags = {"label", "learn", "output", "examples"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunInit(arguments));
          }};
}

}  // namespace parasol
