#include "cluster/job/training_end.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace parasol {

TrainingEnd::TrainingEnd(const job::Job& job)
    : end_(job.end()),
      step_examples_(
          std::max<int64_t>(1, job.train().batch_size()) *
          std::max<int64_t>(
              1, job.parameter_server().synchronous().total_replicas())) {}

absl::Status TrainingEnd::ObserveExamples(int64_t train_examples) {
  if (!end_.has_epochs()) return absl::OkStatus();
  if (train_examples <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job ends after ", end_.epochs(), " epochs, but there are ",
        train_examples, " training examples"));
  }
  if (train_examples_ && *train_examples_ != train_examples) {
    return absl::InvalidArgumentError(
        absl::StrCat("this worker's training set has ", train_examples,
                     " examples, but other workers' has ", *train_examples_,
                     "; give all workers the same files in --data_dir"));
  }
  train_examples_ = train_examples;
  return absl::OkStatus();
}

std::optional<int64_t> TrainingEnd::step() const {
  if (!end_.has_epochs()) {
    return end_.has_steps() ? std::optional<int64_t>(end_.steps())
                            : std::nullopt;
  }
  if (!train_examples_) return std::nullopt;
  const double examples = end_.epochs() * static_cast<double>(*train_examples_);
  const auto steps = static_cast<int64_t>(std::ceil(examples / step_examples_));
  return end_.has_steps() ? std::min<int64_t>(steps, end_.steps()) : steps;
}

}  // namespace parasol
