#include "cluster/client/parameter_client.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "cluster/client/completion.h"
#include "cluster/client/request_plan.h"
#include "cluster/client/shard_link.h"
#include "cluster/rpc/completion_thread.h"

namespace parasol {
namespace {

class ExchangePending : public ParameterClient::Pending {
 public:
  explicit ExchangePending(std::shared_ptr<Completion> completion)
      : completion_(std::move(completion)) {}

  // The caller's memory is in use until then.
  ~ExchangePending() override { completion_->Wait().IgnoreError(); }

  absl::Status Wait() override { return completion_->Wait(); }
  bool WaitFor(absl::Duration limit) override {
    return completion_->WaitFor(limit);
  }
  Outcome outcome() const override { return completion_->outcome(); }

 private:
  const std::shared_ptr<Completion> completion_;
};

std::unique_ptr<ParameterClient::Pending> Failed(const absl::Status& status) {
  auto completion = std::make_shared<Completion>(1);
  completion->Finish(status);
  return std::make_unique<ExchangePending>(std::move(completion));
}

void AddRange(ShardRequest& request, const RequestPlan::Range& range,
              const ParameterClient::Gradient& gradient) {
  request.gradients.push_back(
      gradient.values.subspan(range.offset, range.count));
}

void AddRange(ShardRequest& request, const RequestPlan::Range& range,
              const ParameterClient::Target& target) {
  request.targets.push_back(target.values.subspan(range.offset, range.count));
}

auto* MutableRanges(wire::Operation& header, const ParameterClient::Gradient&) {
  return header.mutable_push()->mutable_range();
}

auto* MutableRanges(wire::Operation& header, const ParameterClient::Target&) {
  return header.mutable_pull()->mutable_range();
}

class ShardedParameterClient : public ParameterClient {
 public:
  ShardedParameterClient(const wire::GetPlacementResponse& placement,
                         RequestPlan plan, std::vector<std::string> variables,
                         const Options& options, Clock& clock,
                         MetricsRegistry& metrics);
  ~ShardedParameterClient() override { Stop(); }

  std::unique_ptr<Pending> Pull(PullRequest request) override {
    return Exchange(request.targets);
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    return Exchange(request.gradients);
  }
  absl::Status Update(const wire::GetPlacementResponse& placement) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

 private:
  // `Item` is Target or Gradient.
  template <typename Item>
  std::unique_ptr<Pending> Exchange(const std::vector<Item>& items);
  template <typename Item>
  absl::Status CheckItems(const std::vector<Item>& items) const;

  void AttendLinks() ABSL_LOCKS_EXCLUDED(mu_);

  const RequestPlan plan_;
  const std::vector<std::string> variables_;
  const Options options_;
  Clock& clock_;
  // Each polls the streams of some shards.
  std::deque<CompletionThread> threads_;
  std::vector<std::unique_ptr<ShardLink>> links_;

  absl::Mutex mu_;
  wire::GetPlacementResponse placement_ ABSL_GUARDED_BY(mu_);
  bool attention_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex join_mu_;
  std::thread attendant_ ABSL_GUARDED_BY(join_mu_);
};

RequestPlan::Limits PlanLimits(const ParameterClient::Options& options) {
  return {.streams_per_shard = static_cast<size_t>(options.streams_per_shard),
          .message_bytes = options.message_bytes};
}

// A thread keeps up with 40 Gbit/s; half of the cores are left to the model.
size_t NumThreads(int shards) {
  const int cores = std::thread::hardware_concurrency();
  return std::clamp(cores / 2, 1, std::max(1, shards));
}

ShardedParameterClient::ShardedParameterClient(
    const wire::GetPlacementResponse& placement, RequestPlan plan,
    std::vector<std::string> variables, const Options& options, Clock& clock,
    MetricsRegistry& metrics)
    : plan_(std::move(plan)),
      variables_(std::move(variables)),
      options_(options),
      clock_(clock),
      threads_(NumThreads(placement.shard_size())),
      placement_(placement) {
  const ParameterClientMetrics link_metrics(metrics);
  for (int i = 0; i < placement.shard_size(); ++i) {
    links_.push_back(std::make_unique<ShardLink>(
        ShardLink::Options{
            .name = absl::StrCat("ps/", i),
            .address = placement.shard(i).address(),
            .streams = static_cast<size_t>(options.streams_per_shard),
            .timeout = options.shard_timeout,
            .worker_incarnation = options.worker_incarnation,
        },
        threads_[i % threads_.size()].queue(), clock, link_metrics, [this] {
          absl::MutexLock lock(&mu_);
          attention_ = true;
        }));
  }
  absl::MutexLock lock(&join_mu_);
  attendant_ = std::thread([this] { AttendLinks(); });
}

void ShardedParameterClient::AttendLinks() {
  while (true) {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& link : links_) next = std::min(next, link->Attend());
    const auto wake = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopped_ || attention_ || clock_.Now() >= next;
    };
    absl::MutexLock lock(&mu_);
    clock_.AwaitWithTimeout(mu_, absl::Condition(&wake), next - clock_.Now());
    if (stopped_) return;
    attention_ = false;
  }
}

template <typename Item>
absl::Status ShardedParameterClient::CheckItems(
    const std::vector<Item>& items) const {
  for (const Item& item : items) {
    if (item.variable >= plan_.num_variables()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("no variable %d: there are %d", item.variable,
                          plan_.num_variables()));
    }
    if (item.values.size() != plan_.elements(item.variable)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "variable %s has %d elements, not %d", variables_[item.variable],
          plan_.elements(item.variable), item.values.size()));
    }
  }
  return absl::OkStatus();
}

template <typename Item>
std::unique_ptr<ParameterClient::Pending> ShardedParameterClient::Exchange(
    const std::vector<Item>& items) {
  if (absl::Status status = CheckItems(items); !status.ok()) {
    return Failed(status);
  }
  std::string run_id;
  {
    absl::MutexLock lock(&mu_);
    run_id = placement_.run_id();
  }
  std::vector<size_t> numbers;
  for (const Item& item : items) numbers.push_back(item.variable);
  const std::vector<RequestPlan::Message> messages = plan_.Messages(numbers);
  auto completion = std::make_shared<Completion>(messages.size());
  std::vector<std::vector<ShardRequest>> by_shard(links_.size());
  for (const RequestPlan::Message& message : messages) {
    ShardRequest& request = by_shard[message.shard].emplace_back();
    request.stream = message.stream;
    request.completion = completion;
    request.run_id = run_id;
    for (const RequestPlan::Range& range : message.ranges) {
      wire::TensorRange& on_wire =
          *MutableRanges(request.operation, items[range.item])->Add();
      on_wire.set_part(range.part);
      on_wire.set_first(range.first);
      on_wire.set_count(range.count);
      AddRange(request, range, items[range.item]);
    }
  }
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    if (by_shard[shard].empty()) continue;
    links_[shard]->Send(std::move(by_shard[shard]));
  }
  return std::make_unique<ExchangePending>(std::move(completion));
}

absl::Status ShardedParameterClient::Update(
    const wire::GetPlacementResponse& placement) {
  ASSIGN_OR_RETURN(
      const RequestPlan plan,
      RequestPlan::Make(placement, variables_, PlanLimits(options_)));
  if (!plan.SameSharding(plan_)) {
    return absl::InvalidArgumentError(
        "the new placement cuts the variables in another way");
  }
  wire::GetPlacementResponse old;
  {
    absl::MutexLock lock(&mu_);
    old = std::exchange(placement_, placement);
  }
  for (int i = 0; i < placement.shard_size(); ++i) {
    const wire::Shard& shard = placement.shard(i);
    if (shard.address() != old.shard(i).address() ||
        shard.incarnation() != old.shard(i).incarnation()) {
      links_[i]->MoveTo(shard.address());
    }
  }
  return absl::OkStatus();
}

void ShardedParameterClient::Stop() {
  for (const auto& link : links_) link->Stop();
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  absl::MutexLock lock(&join_mu_);
  if (attendant_.joinable()) attendant_.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Create(
    const wire::GetPlacementResponse& placement,
    std::vector<std::string> variables, std::vector<std::string> tables,
    const Options& options, Clock& clock, MetricsRegistry& metrics) {
  if (options.streams_per_shard < 1 || options.message_bytes < sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d streams per shard, messages of %d bytes",
                        options.streams_per_shard, options.message_bytes));
  }
  ASSIGN_OR_RETURN(RequestPlan plan, RequestPlan::Make(placement, variables,
                                                       PlanLimits(options)));
  return std::make_unique<ShardedParameterClient>(placement, std::move(plan),
                                                  std::move(variables), options,
                                                  clock, metrics);
}

}  // namespace parasol
