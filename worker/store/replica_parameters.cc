#include "worker/store/replica_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol {
namespace {

// Elements of a task: 64 KiB of each replica's gradient, so that the sum stays
// in the processor's cache until it is applied.
constexpr size_t kBlockElements = 16384;

template <typename T>
const std::byte* BytesOf(const T* values) {
  return reinterpret_cast<const std::byte*>(values);
}

}  // namespace

// The caller's end of a push.
class ReplicaParameters::PendingPush : public Pending {
 public:
  PendingPush(ReplicaParameters& parameters, std::shared_ptr<StepPush> push)
      : parameters_(parameters), push_(std::move(push)) {}

  absl::Status Wait() override {
    return parameters_.Await(*push_, absl::InfiniteDuration()).value();
  }
  bool WaitFor(absl::Duration limit) override {
    return parameters_.Await(*push_, limit).has_value();
  }
  Outcome outcome() const override { return {}; }

 private:
  ReplicaParameters& parameters_;
  const std::shared_ptr<StepPush> push_;
};

ReplicaParameters::ReplicaParameters(ParameterStore& parameters,
                                     Options options)
    : parameters_(parameters),
      options_(std::move(options)),
      sums_(options_.replicas, std::vector<float>(kBlockElements)),
      workspaces_(options_.replicas) {
  const size_t replicas = options_.replicas;
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    variables_.push_back({.step = options_.first_step});
    variables_.back().gradients.resize(replicas);
  }
  for (size_t i = 0; i < parameters.num_tables(); ++i) {
    tables_.push_back({.step = options_.first_step,
                       .sums = std::make_unique<RowAccumulator>(
                           parameters.table(i).width(), /*memory=*/nullptr),
                       .gradients = {}});
    tables_.back().gradients.resize(replicas);
  }
}

std::unique_ptr<TrainingParameters::Pending> ReplicaParameters::Pull(
    PullRequest request) {
  int64_t step = request.min_updates;
  {
    absl::MutexLock lock(&mu_);
    if (!stopped_.ok()) return std::make_unique<DonePending>(stopped_);
    for (const Target& target : request.targets) {
      if (parameters_.variables().specs()[target.variable].frozen) continue;
      step = variables_[target.variable].step;
      CHECK_EQ(step, request.min_updates) << "variable " << target.variable;
    }
  }
  return std::make_unique<DonePending>(
      parameters_.Pull(std::move(request))->Wait(),
      Outcome{.min_updates = step, .max_updates = step});
}

std::unique_ptr<TrainingParameters::Pending> ReplicaParameters::Push(
    PushRequest request) {
  const int replica = request.sync->replica;
  auto push = std::make_shared<StepPush>(
      StepPush{.replica = replica,
               .left = request.gradients.size() + request.rows.size()});
  {
    absl::MutexLock lock(&mu_);
    if (stopped_.ok()) {
      for (const Gradient& gradient : request.gradients) {
        Take(replica, gradient, push);
      }
      for (const RowGradient& rows : request.rows) Take(replica, rows, push);
    }
  }
  return std::make_unique<PendingPush>(*this, std::move(push));
}

void ReplicaParameters::Take(int replica, const Gradient& gradient,
                             const std::shared_ptr<StepPush>& push) {
  Variable& variable = variables_[gradient.variable];
  CHECK(variable.gradients[replica].data() == nullptr)
      << "replica " << replica << " has pushed variable " << gradient.variable
      << " of step " << variable.step << " before";
  variable.gradients[replica] = gradient.values;
  variable.pushes.push_back(push);
  if (++variable.collected < variable.gradients.size()) return;
  const size_t size = gradient.values.size();
  const size_t at_once = parameters_.variables()
                                 .optimizer(gradient.variable)
                                 .needs_whole_variable()
                             ? size
                             : kBlockElements;
  for (size_t first = 0; first < size; first += at_once) {
    tasks_.push_back({.index = gradient.variable,
                      .first = first,
                      .count = std::min(at_once, size - first)});
    ++variable.blocks_left;
  }
}

void ReplicaParameters::Take(int replica, const RowGradient& rows,
                             const std::shared_ptr<StepPush>& push) {
  Table& table = tables_[rows.table];
  CHECK(!table.gradients[replica].has_value())
      << "replica " << replica << " has pushed table " << rows.table
      << " of step " << table.step << " before";
  table.gradients[replica] = rows;
  table.pushes.push_back(push);
  if (++table.collected == table.gradients.size()) {
    tasks_.push_back({.index = rows.table, .is_table = true});
  }
}

bool ReplicaParameters::HasTaskFor(int replica) const {
  return !tasks_.empty() && (replica == 0 || !options_.sums_on_one_device);
}

// What a task reads of a variable or table stays as it is until Finish().
void ReplicaParameters::RunTask(int replica) {
  const Task task = tasks_.front();
  tasks_.pop_front();
  ++running_;
  absl::Status status;
  if (task.is_table) {
    const Table& table = tables_[task.index];
    RowAccumulator& sums = *table.sums;
    const auto gradients = absl::MakeConstSpan(table.gradients);
    mu_.Unlock();
    status = ApplyMeans(task.index, sums, gradients);
  } else {
    const auto gradients =
        absl::MakeConstSpan(variables_[task.index].gradients);
    mu_.Unlock();
    status = ApplyMean(replica, task, gradients);
  }
  mu_.Lock();
  --running_;
  Finish(task, status);
}

absl::Status ReplicaParameters::ApplyMean(
    int replica, const Task& task,
    absl::Span<const absl::Span<const float>> gradients) {
  // Only a variable that is updated as a whole has more than a block.
  if (sums_[replica].size() < task.count) sums_[replica].resize(task.count);
  const absl::Span<float> sum =
      absl::MakeSpan(sums_[replica]).first(task.count);
  if (options_.planned != nullptr) {
    RETURN_IF_ERROR(options_.planned->Add(gradients, task.first, sum,
                                          workspaces_[replica]));
  } else {
    const float* first = gradients[0].data() + task.first;
    std::copy(first, first + task.count, sum.begin());
    for (size_t i = 1; i < gradients.size(); ++i) {
      AddTo(sum, BytesOf(gradients[i].data() + task.first));
    }
  }
  DivideBy(sum, static_cast<float>(gradients.size()));
  parameters_.ApplyBlock(task.index, task.first, sum);
  return absl::OkStatus();
}

absl::Status ReplicaParameters::ApplyMeans(
    size_t table, RowAccumulator& sums,
    absl::Span<const std::optional<RowGradient>> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const RowGradient& rows = *gradients[i];
    sums.Add(static_cast<int>(i), BytesOf(rows.ids.data()),
             BytesOf(rows.values.data()), rows.ids.size(),
             rows.counts.empty() ? nullptr : BytesOf(rows.counts.data()));
  }
  const RowGradients means = sums.TakeMeans();
  return parameters_.ApplyRows(table, means.ids, means.values, means.counts);
}

void ReplicaParameters::Finish(const Task& task, const absl::Status& status) {
  const auto finish = [&status](auto& state, const auto& none) {
    ++state.step;
    state.collected = 0;
    std::fill(state.gradients.begin(), state.gradients.end(), none);
    for (const auto& push : state.pushes) {
      push->status.Update(status);
      --push->left;
    }
    state.pushes.clear();
  };
  if (task.is_table) {
    finish(tables_[task.index], std::optional<RowGradient>());
    return;
  }
  Variable& variable = variables_[task.index];
  for (const auto& push : variable.pushes) push->status.Update(status);
  if (--variable.blocks_left > 0) return;
  parameters_.CountUpdate(task.index);
  finish(variable, absl::Span<const float>());
}

std::optional<absl::Status> ReplicaParameters::ResultOf(
    const StepPush& push) const {
  if (push.left == 0) return push.status;
  if (!stopped_.ok() && running_ == 0) return stopped_;
  return std::nullopt;
}

std::optional<absl::Status> ReplicaParameters::Await(const StepPush& push,
                                                     absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ResultOf(push).has_value() || HasTaskFor(push.replica);
  };
  while (!ResultOf(push).has_value()) {
    if (HasTaskFor(push.replica)) {
      RunTask(push.replica);
    } else if (!Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&has_news),
                                               limit)) {
      return std::nullopt;
    }
  }
  return ResultOf(push);
}

TrainingParameters::Awaited ReplicaParameters::Unanswered() const {
  absl::MutexLock lock(&mu_);
  Awaited awaited;
  for (int replica = 0; replica < options_.replicas; ++replica) {
    const auto lacks = [replica](const Variable& variable) {
      return variable.collected > 0 &&
             variable.gradients[replica].data() == nullptr;
    };
    const auto lacks_rows = [replica](const Table& table) {
      return table.collected > 0 && !table.gradients[replica].has_value();
    };
    if (std::any_of(variables_.begin(), variables_.end(), lacks) ||
        std::any_of(tables_.begin(), tables_.end(), lacks_rows)) {
      awaited.peers.push_back(absl::StrCat("replica/", replica, " (",
                                           options_.devices[replica], ")"));
    }
  }
  return awaited;
}

void ReplicaParameters::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_.Update(absl::CancelledError("stopped"));
  tasks_.clear();
}

}  // namespace parasol
