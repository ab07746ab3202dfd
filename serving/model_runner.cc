#include "serving/model_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

void AppendIds(const IdFeature& from, IdFeature& to) {
  if (to.offsets.empty()) to.offsets.push_back(0);
  const int32_t start = to.offsets.back();
  for (size_t i = 1; i < from.offsets.size(); ++i) {
    to.offsets.push_back(start + from.offsets[i]);
  }
  // Only one of them may have weights if the other has no ids.
  if (!from.weights.empty()) to.weights.resize(to.ids.size(), 1);
  to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
  to.weights.insert(to.weights.end(), from.weights.begin(), from.weights.end());
  if (!to.weights.empty()) to.weights.resize(to.ids.size(), 1);
}

}  // namespace

void AppendExamples(const Batch& from, Batch& to) {
  to.dense.resize(from.dense.size());
  to.ids.resize(from.ids.size());
  for (size_t i = 0; i < from.dense.size(); ++i) {
    to.dense[i].shape = from.dense[i].shape;
    to.dense[i].values.insert(to.dense[i].values.end(),
                              from.dense[i].values.begin(),
                              from.dense[i].values.end());
  }
  for (size_t i = 0; i < from.ids.size(); ++i)
    AppendIds(from.ids[i], to.ids[i]);
  to.labels.insert(to.labels.end(), from.labels.begin(), from.labels.end());
  to.targets.resize(from.targets.size());
  for (size_t i = 0; i < from.targets.size(); ++i) {
    const Target& target = from.targets[i];
    Target& joined = to.targets[i];
    joined.labels.insert(joined.labels.end(), target.labels.begin(),
                         target.labels.end());
    joined.weights.insert(joined.weights.end(), target.weights.begin(),
                          target.weights.end());
  }
  to.columns.resize(from.columns.size());
  for (size_t i = 0; i < from.columns.size(); ++i) {
    const ExampleValues& values = from.columns[i];
    ExampleValues& joined = to.columns[i];
    joined.keys.insert(joined.keys.end(), values.keys.begin(),
                       values.keys.end());
    joined.numbers.insert(joined.numbers.end(), values.numbers.begin(),
                          values.numbers.end());
  }
  to.size += from.size;
}

ModelRunner::ModelRunner(Compute compute, const BatchLimits& limits,
                         Clock& clock, ServingMetrics& metrics)
    : compute_(std::move(compute)),
      limits_(limits),
      clock_(clock),
      metrics_(metrics),
      queue_(limits),
      thread_([this] { Run(); }) {}

ModelRunner::~ModelRunner() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  thread_.join();
}

absl::StatusOr<std::vector<float>> ModelRunner::Predict(Batch batch,
                                                        absl::Time deadline) {
  const int64_t examples = batch.size;
  Pending pending = {.batch = std::move(batch)};
  Pending* request = &pending;
  {
    absl::MutexLock lock(&mu_);
    if (!queue_.Offer(request, examples, clock_.Now(), deadline)) {
      metrics_.overloaded.Add();
      return absl::ResourceExhaustedError(absl::StrCat(
          "overloaded: ", queue_.queued(),
          " examples wait for the model (--max_queued=", limits_.max_queued,
          "); try again later"));
    }
    metrics_.queued_examples.Set(static_cast<double>(queue_.queued()));
  }
  pending.is_done.WaitForNotification();
  return std::move(pending.outputs);
}

void ModelRunner::Run() {
  while (true) {
    const Queue::Taken taken = NextBatch();
    for (Pending* late : taken.expired) {
      metrics_.expired.Add();
      late->outputs = absl::DeadlineExceededError(
          "the model was not free before the request's deadline; try again "
          "later");
      late->is_done.Notify();
    }
    if (!taken.batch.empty()) {
      ComputeBatch(taken.batch);
    } else if (taken.expired.empty()) {
      return;
    }
  }
}

ModelRunner::Queue::Taken ModelRunner::NextBatch() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || !queue_.empty();
  };
  const auto is_full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || queue_.Due() == absl::InfinitePast();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&has_work));
  const absl::Duration wait = queue_.Due() - clock_.Now();
  if (wait > absl::ZeroDuration() && !queue_.empty()) {
    clock_.AwaitWithTimeout(mu_, absl::Condition(&is_full), wait);
  }
  Queue::Taken taken = queue_.Take(clock_.Now());
  metrics_.queued_examples.Set(static_cast<double>(queue_.queued()));
  return taken;
}

void ModelRunner::ComputeBatch(const std::vector<Pending*>& requests) {
  if (ComputeJoined(requests)) return;
  // One of them may be at fault.
  for (Pending* request : requests) ComputeJoined({&request, 1});
}

bool ModelRunner::ComputeJoined(absl::Span<Pending* const> requests) {
  const Batch* batch = &requests.front()->batch;
  if (requests.size() > 1) {
    // Keeps the memory of the arrays.
    for (DenseFeature& feature : joined_.dense) feature.values.clear();
    for (IdFeature& feature : joined_.ids) {
      feature.offsets.clear();
      feature.ids.clear();
      feature.weights.clear();
    }
    joined_.labels.clear();
    joined_.targets.clear();
    joined_.columns.clear();
    joined_.size = 0;
    for (const Pending* request : requests) {
      AppendExamples(request->batch, joined_);
    }
    batch = &joined_;
  }
  const absl::StatusOr<absl::Span<const float>> outputs = compute_(*batch);
  if (!outputs.ok() && requests.size() > 1) return false;
  metrics_.batches.Add();
  metrics_.examples.Add(static_cast<double>(batch->size));
  size_t done = 0;
  const size_t width = outputs.ok() ? outputs->size() / batch->size : 0;
  for (Pending* request : requests) {
    if (outputs.ok()) {
      const size_t count = request->batch.size * width;
      request->outputs.emplace(outputs->begin() + done,
                               outputs->begin() + done + count);
      done += count;
    } else {
      request->outputs = outputs.status();
    }
    request->is_done.Notify();  // `request` is gone
  }
  return true;
}

}  // namespace parasol
