#include "cluster/check/check_job_and_data.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/check/data_check.h"
#include "cluster/check/idle_settings.h"
#include "cluster/check/memory_estimate.h"
#include "cluster/check/step_size.h"
#include "cluster/job/defaults.h"
#include "cluster/job/training_end.h"

namespace parasol {
namespace {

// What is known of the training data.
struct TrainingData {
  int64_t examples = 0;  // 0: unknown
  // DataCheck::MostOfAnId() of all of them; empty: unknown.
  std::vector<int64_t> most_of_id = {};
};

// The end in steps, if the number of examples is known.
void FindEnd(const job::Job& job, const TrainingData& data, JobReport& report) {
  const int64_t examples = data.examples;
  if (job.end().has_never() || job.train().follow()) return;
  if (examples > 0) {
    std::string warning = LargeStepWarning(job, examples);
    if (!warning.empty()) report.warnings.push_back(std::move(warning));
  }
  TrainingEnd end(job);
  if (examples > 0 && !end.ObserveExamples(examples).ok()) return;
  if (job.end().has_epochs() && examples <= 0) return;
  report.end_step = end.step();
  if (!report.end_step.has_value() || examples <= 0) return;
  report.end =
      absl::StrFormat(", after %.4g epochs of %d examples, %d in a step",
                      static_cast<double>(*report.end_step) /
                          static_cast<double>(*end.steps_per_epoch()),
                      examples, ExamplesOfStep(job));
  // A warm start brings counts.
  if (job.has_warm_start()) return;
  const int64_t each = *end.steps_per_epoch();
  for (std::string& warning :
       AdmissionWarnings(job.model(), data.most_of_id,
                         (*report.end_step + each - 1) / each)) {
    report.warnings.push_back(std::move(warning));
  }
}

// Returns the job with the numbers of who trains it.
absl::StatusOr<job::Job> Fitted(const CheckedJob& job,
                                const CheckOptions& options) {
  job::Job fitted = *job.job();
  if (options.fit == nullptr) {
    RETURN_IF_ERROR(FillClusterDefaults(fitted, options.workers));
    return fitted;
  }
  std::optional<size_t> variables;
  if (job.graph().has_value()) variables = job.graph()->variables.size();
  RETURN_IF_ERROR(options.fit(variables, fitted));
  return fitted;
}

TrainingData AddData(const CheckOptions& options, CheckedJob& checked,
                     JobReport& report, MemoryOptions& memory) {
  const job::Job& job = *checked.job();
  const Graph* const graph =
      checked.graph().has_value() ? &*checked.graph() : nullptr;
  DataCheck data(job, graph,
                 {.data_dir = options.data_dir,
                  .max_examples = options.max_examples,
                  .sample_bytes = options.sample_bytes,
                  .code_is_elsewhere = options.code_is_elsewhere});
  if (job.has_train()) data.Check("train", job.train());
  if (job.has_eval()) data.Check("eval", job.eval());
  data.Finish();
  for (const std::string& fault : data.found().faults) {
    if (options.goes_on) {
      report.warnings.push_back(checked.patterns().InFile(fault));
    } else {
      checked.AddFault(fault);
    }
  }
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
  for (VocabularyChange vocabulary : data.found().vocabularies) {
    // A pattern's columns have one place together.
    if (checked.patterns().Of(vocabulary.path) != nullptr) continue;
    vocabulary.path = checked.patterns().InFile(vocabulary.path);
    report.vocabularies.push_back(std::move(vocabulary));
  }
  memory.rows = data.DistinctIds();
  memory.data_bytes = data.memory_bytes();
  for (const DatasetReport& set : report.data_sets) {
    if (set.name != "train" || set.is_sample) continue;
    TrainingData known = {.examples = set.examples};
    if (!set.is_partial()) known.most_of_id = data.MostOfAnId();
    return known;
  }
  return {};
}

// Adds what each role holds of a job; a fault if it can't be placed.
void AddMemory(const job::Job& fitted, const MemoryOptions& memory,
               CheckedJob& job, JobReport& report) {
  if (!job.graph().has_value()) return;
  absl::StatusOr<std::vector<RoleMemory>> roles =
      EstimateMemory(fitted, *job.graph(), memory);
  if (roles.ok()) {
    report.memory = *std::move(roles);
  } else if (job.faults().empty()) {
    // Otherwise it may be the same fault, under a name that the job has not.
    job.AddFault(absl::StrCat("parameter_server: ", roles.status().message()));
  }
}

}  // namespace

JobReport CheckJobAndData(CheckedJob& job, const CheckOptions& options) {
  JobReport report;
  MemoryOptions memory = {.ps = options.ps};
  TrainingData train;
  for (const ColumnPattern& pattern : job.patterns().all()) {
    report.patterns.push_back({.path = pattern.path,
                               .pattern = pattern.pattern,
                               .columns = pattern.columns});
  }
  if (job.job().has_value() && !options.data_dir.empty()) {
    train = AddData(options, job, report, memory);
  }
  if (job.job().has_value() &&
      (job.graph().has_value() || options.fit != nullptr)) {
    absl::StatusOr<job::Job> fitted = Fitted(job, options);
    if (!fitted.ok()) job.AddFault(fitted.status().message());
    if (fitted.ok() && job.graph().has_value()) {
      FindEnd(*fitted, train, report);
      for (std::string& warning : ZeroRateWarnings(*fitted)) {
        report.warnings.push_back(std::move(warning));
      }
    }
    AddMemory(fitted.ok() ? *fitted : *job.job(), memory, job, report);
  }
  for (const JobFault& fault : job.faults()) {
    report.faults.push_back(OneLine(fault.Line()));
  }
  for (std::string& warning : report.warnings) warning = OneLine(warning);
  return report;
}

}  // namespace parasol
