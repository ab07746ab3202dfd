#include "cluster/check/check_job_and_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/check/data_check.h"
#include "cluster/check/memory_estimate.h"
#include "cluster/job/defaults.h"
#include "cluster/job/training_end.h"

namespace parasol {
namespace {

// The end in steps, if `examples` of training data are known.
void FindEnd(const job::Job& job, int64_t examples, JobReport& report) {
  TrainingEnd end(job);
  if (examples > 0 && !end.ObserveExamples(examples).ok()) return;
  if (job.end().has_epochs() && examples <= 0) return;
  report.end_step = end.step();
  if (!report.end_step.has_value() || examples <= 0) return;
  const int64_t replicas = std::max<int64_t>(
      1, job.parameter_server().synchronous().total_replicas());
  const int64_t batch = job.train().batch_size() * replicas;
  report.end =
      absl::StrFormat(", after %.4g epochs of %d examples, %d in a step",
                      static_cast<double>(*report.end_step) /
                          static_cast<double>(*end.steps_per_epoch()),
                      examples, batch);
  if (batch > examples) {
    report.warnings.push_back(absl::StrCat(
        "train.batch_size: a step has ", batch, " examples, more than all ",
        examples, " training examples: an epoch is one step"));
  }
}

// Returns the number of training examples; 0: unknown.
int64_t AddData(const CheckOptions& options, CheckedJob& checked,
                JobReport& report, MemoryOptions& memory) {
  const job::Job& job = *checked.job();
  const Graph* const graph =
      checked.graph().has_value() ? &*checked.graph() : nullptr;
  DataCheck data(
      job, graph,
      {.data_dir = options.data_dir, .max_examples = options.max_examples});
  if (job.has_train()) data.Check("train", job.train());
  if (job.has_eval()) data.Check("eval", job.eval());
  data.Finish();
  for (const std::string& fault : data.found().faults) checked.AddFault(fault);
  for (const std::string& warning : data.found().warnings) {
    report.warnings.push_back(checked.patterns().InFile(warning));
  }
  report.data_sets = data.found().data_sets;
  for (Normalization n : data.found().normalizations) {
    const ColumnPattern* const pattern = checked.patterns().Of(n.path);
    if (pattern != nullptr) n.pattern = pattern->pattern;
    n.path = checked.patterns().InFile(n.path);
    report.normalizations.push_back(std::move(n));
  }
  memory.rows = data.DistinctIds();
  memory.data_bytes = data.file_bytes();
  for (const DatasetReport& set : report.data_sets) {
    if (set.name == "train") return set.examples;
  }
  return 0;
}

}  // namespace

JobReport CheckJobAndData(CheckedJob& job, const CheckOptions& options) {
  JobReport report;
  MemoryOptions memory = {.ps = options.ps};
  int64_t train_examples = 0;
  for (const ColumnPattern& pattern : job.patterns().all()) {
    report.patterns.push_back({.path = pattern.path,
                               .pattern = pattern.pattern,
                               .columns = pattern.columns});
  }
  if (job.job().has_value() && !options.data_dir.empty()) {
    train_examples = AddData(options, job, report, memory);
  }
  if (job.graph().has_value()) {
    job::Job placed = *job.job();
    const absl::Status status = FillClusterDefaults(placed, options.workers);
    if (!status.ok()) job.AddFault(status.message());
    if (status.ok()) FindEnd(placed, train_examples, report);
    absl::StatusOr<std::vector<RoleMemory>> roles =
        EstimateMemory(placed, *job.graph(), memory);
    if (roles.ok()) {
      report.memory = *std::move(roles);
    } else {
      job.AddFault(
          absl::StrCat("parameter_server: ", roles.status().message()));
    }
  }
  for (const JobFault& fault : job.faults()) {
    report.faults.push_back(fault.Line());
  }
  return report;
}

}  // namespace parasol
