#include "cluster/check/start_check.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/check/data_check.h"
#include "cluster/job/check_job.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

// What a start looks at of each data set: small ones are read whole.
constexpr int64_t kStartBytes = 4 << 20;
constexpr int64_t kStartExamples = 51'200;

bool HasTrained(const std::string& directory) {
  if (directory.empty()) return false;
  const absl::StatusOr<std::vector<int64_t>> steps =
      CheckpointStore(directory).ListSteps();
  return steps.ok() && !steps->empty() && steps->back() > 0;
}

std::vector<std::string> SamplesOf(const JobReport& report) {
  std::vector<std::string> lines;
  for (const DatasetReport& data : report.data_sets) {
    if (!data.is_partial()) continue;
    lines.push_back(
        absl::StrCat(data.name, ": a sample of ", data.looked_at,
                     " examples was checked; `parasol check` looks at more"));
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::optional<LoadedJob>> CheckStart(const JobStart& start,
                                                    StartReport& report) {
  ASSIGN_OR_RETURN(
      CheckedJob checked,
      CheckedJob::Read(start.path, start.overrides, start.options.data_dir));
  CheckOptions options = start.options;
  options.sample_bytes = kStartBytes;
  options.max_examples = kStartExamples;
  const std::string directory =
      start.checkpoint_directory.empty() && checked.job().has_value()
          ? checked.job()->checkpoint().directory()
          : start.checkpoint_directory;
  options.goes_on = HasTrained(directory);
  JobReport found = CheckJobAndData(checked, options);
  report.samples = SamplesOf(found);
  report.faults = std::move(found.faults);
  report.warnings = std::move(found.warnings);
  if (!report.faults.empty()) return std::nullopt;
  return LoadedJob{*checked.job(), *checked.graph()};
}

absl::StatusOr<LoadedJob> LoadCheckedJob(
    const JobStart& start,
    absl::FunctionRef<void(const std::string& line, bool is_warning)> say) {
  StartReport report;
  ASSIGN_OR_RETURN(std::optional<LoadedJob> loaded, CheckStart(start, report));
  for (const std::string& line : report.samples) say(line, false);
  for (const std::string& line : report.warnings) say(line, true);
  if (loaded.has_value()) return *std::move(loaded);
  for (size_t i = 0; i + 1 < report.faults.size(); ++i) {
    ExitWith(absl::InvalidArgumentError(report.faults[i]));
  }
  return absl::InvalidArgumentError(report.faults.back());
}

void LogStartLine(const std::string& line, bool is_warning) {
  if (is_warning) {
    LOG(WARNING) << line;
  } else {
    LOG(INFO) << line;
  }
}

StartReport CheckTrainingData(const job::Job& job, const Graph& graph,
                              const std::string& data_dir) {
  DataCheck data(job, &graph,
                 {.data_dir = data_dir,
                  .max_examples = kStartExamples,
                  .sample_bytes = kStartBytes});
  data.Check("train", job.train());
  data.Finish();
  StartReport report = {.faults = data.found().faults,
                        .warnings = data.found().warnings,
                        .samples = SamplesOf(data.found())};
  for (auto* const lines : {&report.faults, &report.warnings}) {
    for (std::string& line : *lines) line = OneLine(line);
  }
  return report;
}

}  // namespace parasol
