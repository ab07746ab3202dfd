#include "cluster/job/training_end.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/input/epoch_batches.h"

namespace parasol {
namespace {

// Limits of what a worker may report: sums of them do not overflow.
constexpr int64_t kMaxExamples = int64_t{1} << 40;
constexpr size_t kMaxShards = 1 << 16;
// As many as a checkpoint may say that a run has seen.
constexpr double kMaxEpochs = 1e15;
// Number of shards that a message names.
constexpr size_t kMaxNamed = 16;

std::string ListOf(absl::Span<const int64_t> shard_examples) {
  const bool is_long = shard_examples.size() > kMaxNamed;
  return absl::StrCat(
      absl::StrJoin(shard_examples.subspan(0, kMaxNamed), ", "),
      is_long
          ? absl::StrCat(" and ", shard_examples.size() - kMaxNamed, " more")
          : "");
}

}  // namespace

TrainingEnd::TrainingEnd(const job::Job& job)
    : end_(job.end()),
      batch_size_(std::max<int64_t>(1, job.train().batch_size())),
      total_replicas_(job.parameter_server().synchronous().total_replicas()),
      has_whole_shards_(job.train().auto_shard() == job::Dataset::OFF) {}

void TrainingEnd::GoOn(const durable::EpochsSeen& seen, int64_t step,
                       int64_t examples_per_step) {
  const bool is_sane = seen.step() >= 0 && seen.step() <= step &&
                       seen.epochs() >= 0 && seen.epochs() <= kMaxEpochs &&
                       seen.steps_per_epoch() >= 0;
  seen_ = is_sane ? seen : durable::EpochsSeen();
  resumed_step_ = step;
  examples_per_step_ = examples_per_step;
}

durable::EpochsSeen TrainingEnd::Base() const {
  durable::EpochsSeen base = seen_;
  if (base.steps_per_epoch() == 0 && examples_per_step_ > 0 &&
      steps_per_epoch()) {
    base.set_steps_per_epoch(BatchesOf(*train_examples_, examples_per_step_));
  }
  if (!steps_per_epoch() || base.steps_per_epoch() == 0 ||
      base.steps_per_epoch() == *steps_per_epoch()) {
    return base;
  }
  base.set_epochs(base.epochs() +
                  static_cast<double>(resumed_step_ - base.step()) /
                      static_cast<double>(base.steps_per_epoch()));
  base.set_step(resumed_step_);
  return base;
}

durable::EpochsSeen TrainingEnd::Seen() const {
  durable::EpochsSeen seen = Base();
  seen.set_steps_per_epoch(steps_per_epoch().value_or(seen_.steps_per_epoch()));
  return seen;
}

absl::Status TrainingEnd::ObserveExamples(
    int64_t train_examples, absl::Span<const int64_t> shard_examples) {
  if (!train_examples_) {
    RETURN_IF_ERROR(CheckExamples(train_examples, shard_examples));
    train_examples_ = train_examples;
    shard_examples_.assign(shard_examples.begin(), shard_examples.end());
    return absl::OkStatus();
  }
  if (*train_examples_ != train_examples) {
    return absl::InvalidArgumentError(
        absl::StrCat("this worker's training set has ", train_examples,
                     " examples, but other workers' has ", *train_examples_,
                     "; give all workers the same files in --data_dir"));
  }
  if (shard_examples != absl::MakeConstSpan(shard_examples_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this worker's training set has shards of ", ListOf(shard_examples),
        " examples, another worker's of ", ListOf(shard_examples_),
        "; give all workers the same files in --data_dir, and the same "
        "TF_CONFIG"));
  }
  return absl::OkStatus();
}

absl::Status TrainingEnd::CheckExamples(
    int64_t train_examples, absl::Span<const int64_t> shard_examples) const {
  if (train_examples < 0 || train_examples > kMaxExamples ||
      shard_examples.size() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("the training set has ", train_examples, " examples in ",
                     shard_examples.size(), " shards, of at most ",
                     kMaxExamples, " in ", kMaxShards));
  }
  for (const int64_t examples : shard_examples) {
    if (examples > 0 && examples <= kMaxExamples) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a shard of the training set has ", examples,
                     " examples; it needs 1 to ", kMaxExamples));
  }
  if (end_.has_epochs() && train_examples <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job ends after ", end_.epochs(), " epochs, but there are ",
        train_examples, " training examples"));
  }
  return absl::OkStatus();
}

std::vector<int64_t> TrainingEnd::ShardBatches() const {
  std::vector<int64_t> batches;
  for (const int64_t examples : shard_examples_) {
    batches.push_back(BatchesOf(examples, batch_size_));
  }
  return batches;
}

std::optional<int64_t> TrainingEnd::step() const {
  if (end_.has_never()) return kEndless;
  if (!end_.has_epochs()) {
    return end_.has_steps() ? std::optional<int64_t>(end_.steps())
                            : std::nullopt;
  }
  if (!train_examples_) return std::nullopt;
  const durable::EpochsSeen base = Base();
  const double left = std::max(0.0, end_.epochs() - base.epochs());
  const int64_t steps = base.step() + StepsOfEpochs(left, StepsPerEpoch());
  return end_.has_steps() ? std::min<int64_t>(steps, end_.steps()) : steps;
}

int64_t TrainingEnd::StepsPerEpoch() const {
  if (shard_examples_.empty() || (total_replicas_ > 0 && has_whole_shards_)) {
    return BatchesOf(*train_examples_,
                     batch_size_ * std::max<int64_t>(1, total_replicas_));
  }
  const std::vector<int64_t> batches = ShardBatches();
  return total_replicas_ > 0
             ? *std::max_element(batches.begin(), batches.end())
             : std::accumulate(batches.begin(), batches.end(), int64_t{0});
}

}  // namespace parasol
