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
#include "cluster/client/gradient_encoder.h"
#include "cluster/client/operation_plan.h"
#include "cluster/client/row_operations.h"
#include "cluster/client/shard_link.h"
#include "cluster/client/shard_operation.h"
#include "cluster/rpc/completion_thread.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

class ExchangePending : public ParameterClient::Pending {
 public:
  ExchangePending(std::shared_ptr<Completion> completion, Clock& clock)
      : completion_(std::move(completion)), clock_(clock) {}

  // The caller's memory is in use until then.
  ~ExchangePending() override { completion_->Wait().IgnoreError(); }

  absl::Status Wait() override { return completion_->Wait(); }
  bool WaitFor(absl::Duration limit) override {
    return completion_->WaitFor(clock_, limit);
  }
  Outcome outcome() const override { return completion_->outcome(); }

 private:
  const std::shared_ptr<Completion> completion_;
  Clock& clock_;
};

class FailedPending : public ParameterClient::Pending {
 public:
  explicit FailedPending(absl::Status status) : status_(std::move(status)) {}

  absl::Status Wait() override { return status_; }
  bool WaitFor(absl::Duration) override { return true; }
  Outcome outcome() const override { return {}; }

 private:
  const absl::Status status_;
};

std::unique_ptr<ParameterClient::Pending> Failed(absl::Status status) {
  return std::make_unique<FailedPending>(std::move(status));
}

template <typename Item>
std::vector<size_t> NumbersOf(const std::vector<Item>& items) {
  std::vector<size_t> numbers;
  numbers.reserve(items.size());
  for (const Item& item : items) numbers.push_back(item.variable);
  return numbers;
}

using OperationPtr = std::shared_ptr<ShardOperation>;

void SetMemory(ShardOperation::Range& range,
               const ParameterClient::Gradient& gradient, size_t offset) {
  range.gradient = gradient.values.data() + offset;
}

void SetMemory(ShardOperation::Range& range,
               const ParameterClient::Target& target, size_t offset) {
  range.target = target.values.data() + offset;
}

class ShardedParameterClient : public ParameterClient {
 public:
  ShardedParameterClient(const wire::GetPlacementResponse& placement,
                         OperationPlan plan, RowOperations rows,
                         std::vector<std::string> variables,
                         std::vector<std::string> tables,
                         const Options& options, Clock& clock,
                         MetricsRegistry& metrics);
  ~ShardedParameterClient() override { Stop(); }

  std::unique_ptr<Pending> Pull(PullRequest request) override;
  std::unique_ptr<Pending> Push(PushRequest request) override;
  absl::Status Update(const wire::GetPlacementResponse& placement) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

 private:
  // `Item` is Target or Gradient, `Rows` is RowTarget or RowGradient.
  template <typename Item, typename Rows>
  absl::Status Check(const std::vector<Item>& items,
                     const std::vector<Rows>& rows) const;
  // The requests for the messages, without what the whole call has.
  template <typename Item>
  void AddDense(ShardOperation::Kind kind, const std::vector<Item>& items,
                const std::vector<OperationPlan::Operation>& messages,
                std::vector<OperationPtr>& requests) const;
  std::unique_ptr<Pending> Start(std::vector<OperationPtr>& requests);
  void Send(ShardLink& link, absl::Span<const OperationPtr> requests);
  std::shared_ptr<const std::string> run_id() const ABSL_LOCKS_EXCLUDED(mu_);

  void AttendLinks() ABSL_LOCKS_EXCLUDED(mu_);

  const OperationPlan plan_;
  const RowOperations rows_;
  const std::vector<std::string> variables_;
  const std::vector<std::string> tables_;
  const Options options_;
  Clock& clock_;
  GradientEncoder encoder_;
  // Each polls the streams of some shards.
  std::deque<CompletionThread> threads_;
  std::vector<std::unique_ptr<ShardLink>> links_;

  mutable absl::Mutex mu_;
  wire::GetPlacementResponse placement_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const std::string> run_id_ ABSL_GUARDED_BY(mu_);
  bool attention_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex join_mu_;
  std::thread attendant_ ABSL_GUARDED_BY(join_mu_);
};

OperationPlan::Limits PlanLimits(const ParameterClient::Options& options) {
  return {.lanes_per_shard = static_cast<size_t>(options.streams_per_shard),
          .message_bytes = options.message_bytes};
}

RowOperations::Limits RowLimits(const ParameterClient::Options& options) {
  return {.lanes_per_shard = static_cast<size_t>(options.streams_per_shard),
          .message_bytes = options.message_bytes,
          .encoding = options.wire_encoding};
}

std::vector<size_t> ElementsOf(const OperationPlan& plan) {
  std::vector<size_t> elements;
  for (size_t i = 0; i < plan.num_variables(); ++i) {
    elements.push_back(plan.elements(i));
  }
  return elements;
}

// A thread keeps up with 40 Gbit/s; half of the cores are left to the model.
size_t NumThreads(int shards) {
  const int cores = std::thread::hardware_concurrency();
  return std::clamp(cores / 2, 1, std::max(1, shards));
}

ShardedParameterClient::ShardedParameterClient(
    const wire::GetPlacementResponse& placement, OperationPlan plan,
    RowOperations rows, std::vector<std::string> variables,
    std::vector<std::string> tables, const Options& options, Clock& clock,
    MetricsRegistry& metrics)
    : plan_(std::move(plan)),
      rows_(std::move(rows)),
      variables_(std::move(variables)),
      tables_(std::move(tables)),
      options_(options),
      clock_(clock),
      encoder_(options.wire_encoding, options.push_share, ElementsOf(plan_)),
      threads_(NumThreads(placement.shard_size())),
      placement_(placement),
      run_id_(std::make_shared<const std::string>(placement.run_id())) {
  const ParameterClientMetrics link_metrics(metrics);
  for (int i = 0; i < placement.shard_size(); ++i) {
    links_.push_back(std::make_unique<ShardLink>(
        ShardLink::Options{
            .name = absl::StrCat("ps/", i),
            .address = placement.shard(i).address(),
            .lanes = static_cast<size_t>(options.streams_per_shard),
            .limits = {.message_bytes = options.message_bytes},
            .timeout = options.shard_timeout,
            .worker_incarnation = options.worker_incarnation,
            .shared_memory = options.shared_memory,
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

template <typename Item, typename Rows>
absl::Status ShardedParameterClient::Check(
    const std::vector<Item>& items, const std::vector<Rows>& rows) const {
  for (const Item& item : items) {
    if (item.variable >= plan_.num_variables()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("variable number %d is not in the model: it has %d",
                          item.variable, plan_.num_variables()));
    }
    if (item.values.size() != plan_.elements(item.variable)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "variable %s has %d elements, not %d", variables_[item.variable],
          plan_.elements(item.variable), item.values.size()));
    }
  }
  for (const Rows& some : rows) {
    if (some.table >= rows_.num_tables()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("table number %d is not in the model: it has %d",
                          some.table, rows_.num_tables()));
    }
    if (some.ids.size() > UINT32_MAX ||
        some.values.size() != some.ids.size() * rows_.width(some.table)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "table %s: %d elements for %d rows of %d", tables_[some.table],
          some.values.size(), some.ids.size(), rows_.width(some.table)));
    }
  }
  return absl::OkStatus();
}

template <typename Item>
void ShardedParameterClient::AddDense(
    ShardOperation::Kind kind, const std::vector<Item>& items,
    const std::vector<OperationPlan::Operation>& messages,
    std::vector<OperationPtr>& requests) const {
  for (const OperationPlan::Operation& message : messages) {
    auto request = std::make_shared<ShardOperation>();
    request->kind = kind;
    request->shard = message.shard;
    request->lane = message.lane;
    request->exact = message.untrained;
    size_t elements = 0;
    for (const OperationPlan::Range& range : message.ranges) {
      ShardOperation::Range& to = request->ranges.emplace_back();
      to.part = range.part;
      to.first = range.first;
      to.count = range.count;
      to.variable = items[range.item].variable;
      to.offset = range.offset;
      SetMemory(to, items[range.item], range.offset);
      elements += range.count;
    }
    if (kind == ShardOperation::Kind::kPull) {
      request->encoding =
          request->exact ? job::FLOAT32 : options_.wire_encoding;
    } else {
      request->payloads = message.ranges.size();
    }
    request->bytes = EncodedBytes(request->encoding, elements);
    requests.push_back(std::move(request));
  }
}

std::unique_ptr<ParameterClient::Pending> ShardedParameterClient::Pull(
    PullRequest pull) {
  if (absl::Status status = Check(pull.targets, pull.rows); !status.ok()) {
    return Failed(status);
  }
  std::vector<OperationPtr> requests;
  AddDense(ShardOperation::Kind::kPull, pull.targets,
           plan_.Operations(NumbersOf(pull.targets)), requests);
  for (const RowTarget& rows : pull.rows) {
    rows_.AddPulls(rows.table, rows.ids, rows.values, requests);
  }
  for (const OperationPtr& request : requests) {
    request->min_updates = pull.min_updates;
  }
  return Start(requests);
}

std::unique_ptr<ParameterClient::Pending> ShardedParameterClient::Push(
    PushRequest push) {
  if (absl::Status status = Check(push.gradients, push.rows); !status.ok()) {
    return Failed(status);
  }
  std::vector<OperationPtr> requests;
  AddDense(ShardOperation::Kind::kPush, push.gradients,
           plan_.Operations(NumbersOf(push.gradients)), requests);
  for (const RowGradient& rows : push.rows) {
    if (absl::Status status =
            rows_.AddPushes(rows.table, rows.ids, rows.values, requests);
        !status.ok()) {
      return Failed(status);
    }
  }
  if (push.sync.has_value()) {
    for (const OperationPtr& request : requests) {
      request->sync = {.step = push.sync->step, .replica = push.sync->replica};
    }
  }
  return Start(requests);
}

std::unique_ptr<ParameterClient::Pending> ShardedParameterClient::Start(
    std::vector<OperationPtr>& requests) {
  const auto completion = std::make_shared<Completion>(requests.size());
  const std::shared_ptr<const std::string> run = run_id();
  for (const OperationPtr& request : requests) {
    request->completion = completion;
    request->run_id = run;
  }
  if (links_.size() > 1) {
    std::stable_sort(requests.begin(), requests.end(),
                     [](const OperationPtr& a, const OperationPtr& b) {
                       return a->shard < b->shard;
                     });
  }
  for (auto first = requests.begin(); first != requests.end();) {
    const size_t shard = (*first)->shard;
    const auto last = std::find_if(
        first, requests.end(),
        [&](const OperationPtr& request) { return request->shard != shard; });
    Send(*links_[shard], absl::MakeConstSpan(&*first, last - first));
    first = last;
  }
  return std::make_unique<ExchangePending>(completion, clock_);
}

// What is encoded is sent while the next request is being encoded.
void ShardedParameterClient::Send(ShardLink& link,
                                  absl::Span<const OperationPtr> requests) {
  if (!encoder_.encodes()) return link.Send(requests);
  for (const OperationPtr& request : requests) {
    if (request->kind == ShardOperation::Kind::kPush && !request->exact) {
      encoder_.Encode(*request);
    }
    link.Send({&request, 1});
  }
}

std::shared_ptr<const std::string> ShardedParameterClient::run_id() const {
  absl::MutexLock lock(&mu_);
  return run_id_;
}

absl::Status ShardedParameterClient::Update(
    const wire::GetPlacementResponse& placement) {
  ASSIGN_OR_RETURN(
      const OperationPlan plan,
      OperationPlan::Make(placement, variables_, PlanLimits(options_)));
  ASSIGN_OR_RETURN(
      const RowOperations rows,
      RowOperations::Make(placement, tables_, RowLimits(options_)));
  if (!plan.SameSharding(plan_) || !rows.SameTables(rows_)) {
    return absl::InvalidArgumentError(
        "the chief's new placement splits the variables differently; start "
        "this worker again");
  }
  wire::GetPlacementResponse old;
  {
    absl::MutexLock lock(&mu_);
    old = std::exchange(placement_, placement);
    run_id_ = std::make_shared<const std::string>(placement.run_id());
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
  if (!(options.push_share > 0 && options.push_share <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("push_share %g is not in (0, 1]", options.push_share));
  }
  ASSIGN_OR_RETURN(
      OperationPlan plan,
      OperationPlan::Make(placement, variables, PlanLimits(options)));
  ASSIGN_OR_RETURN(RowOperations rows,
                   RowOperations::Make(placement, tables, RowLimits(options)));
  return std::make_unique<ShardedParameterClient>(
      placement, std::move(plan), std::move(rows), std::move(variables),
      std::move(tables), options, clock, metrics);
}

}  // namespace parasol
