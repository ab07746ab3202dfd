#include "parameters/client/parameter_client.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/rpc/completion_thread.h"
#include "parameters/client/completion.h"
#include "parameters/client/exchange_pending.h"
#include "parameters/client/gradient_encoder.h"
#include "parameters/client/operation_plan.h"
#include "parameters/client/parameter_client_metrics.h"
#include "parameters/client/push_pulls.h"
#include "parameters/client/row_operations.h"
#include "parameters/client/row_pushes.h"
#include "parameters/client/shard_link.h"
#include "parameters/client/shard_operation.h"

namespace parasol {
namespace {

template <typename Item>
absl::InlinedVector<size_t, 4> NumbersOf(const std::vector<Item>& items) {
  absl::InlinedVector<size_t, 4> numbers;
  numbers.reserve(items.size());
  for (const Item& item : items) numbers.push_back(item.variable);
  return numbers;
}

// The operations of one call that are not sent yet. The operations of variables
// are encoded one by one as they are sent.
struct Draft {
  using Dense = absl::InlinedVector<ShardOperation, 1>;

  Dense dense;
  std::vector<EncodedOperation> rows;
};

void SetMemory(ShardOperation::Range& range,
               const ParameterClient::Gradient& gradient, size_t offset) {
  range.gradient = gradient.values.data() + offset;
}
void SetMemory(ShardOperation::Range& range,
               const ParameterClient::Target& target, size_t offset) {
  range.target = target.values.data() + offset;
}
void SetMemory(ShardOperation::Range& range, const PushPullItem& item,
               size_t offset) {
  range.gradient = item.gradient.data() + offset;
  range.target = item.target.data() + offset;
}

template <typename Operations, typename Shard>
void SortByShard(Operations& operations, Shard shard) {
  const auto is_before = [&](const auto& a, const auto& b) {
    return shard(a) < shard(b);
  };
  if (std::is_sorted(operations.begin(), operations.end(), is_before)) return;
  std::stable_sort(operations.begin(), operations.end(), is_before);
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
  PushAndPull PushPull(PushRequest push, PullRequest pull) override;
  absl::Status Update(const wire::GetPlacementResponse& placement) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void ShardsAreLoading(absl::Span<const int> shards) override;
  Awaited Unanswered() const override;
  std::vector<PeerWait> PeerWaits() const override { return WaitsOf(links_); }
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

 private:
  // `Item` is Target or Gradient, `Rows` is RowTarget or RowGradient.
  template <typename Item, typename Rows>
  absl::Status Check(const std::vector<Item>& items,
                     const std::vector<Rows>& rows) const;
  // Appends the call's operations of variables.
  template <typename Item>
  void AddDense(const std::shared_ptr<const Call>& call,
                const std::vector<Item>& items, Draft::Dense& operations) const;
  // Sends a push. What `pull` has of it too is taken out of both requests and
  // is part of the call.
  absl::StatusOr<std::shared_ptr<const Call>> StartPush(PushRequest& push,
                                                        PullRequest& pull);
  void Start(const std::shared_ptr<const Call>& call, Draft& draft);
  // Returns the lanes in which a pull of the table's rows sees all pushes that
  // were started before.
  RowOperations::PullLanes LanesOfPulls(size_t table) {
    return row_pushes_.AreUnanswered(table)
               ? RowOperations::PullLanes::kOfPushes
               : RowOperations::PullLanes::kAll;
  }
  // Returns the loop of each lane to the shard. Neighbouring lanes have
  // different loops.
  std::vector<SocketLoop*> LoopsOf(int shard) {
    std::vector<SocketLoop*> loops;
    for (int lane = 0; lane < options_.streams_per_shard; ++lane) {
      loops.push_back(&socket_loops_[(shard + lane) % socket_loops_.size()]);
    }
    return loops;
  }

  void AttendLinks() ABSL_LOCKS_EXCLUDED(mu_);

  const OperationPlan plan_;
  const RowOperations rows_;
  const uint64_t layout_;
  const std::vector<std::string> variables_;
  const std::vector<std::string> tables_;
  const Options options_;
  Clock& clock_;
  GradientEncoder encoder_;
  // Each polls the streams of some shards.
  std::deque<CompletionThread> threads_;
  // Each serves some lanes.
  std::deque<SocketLoop> socket_loops_;
  std::vector<std::unique_ptr<ShardLink>> links_;
  std::atomic<int64_t> moves_ = 0;
  // Name of the run of operations that begin now.
  std::atomic<const std::string*> run_id_ = nullptr;

  RowPushes row_pushes_;

  mutable absl::Mutex mu_;
  wire::GetPlacementResponse placement_ ABSL_GUARDED_BY(mu_);
  // All runs that the client has known, the last one of which is run_id_'s.
  // They stay: operations refer to them.
  std::deque<std::string> run_ids_ ABSL_GUARDED_BY(mu_);
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

// A thread keeps up with 40 Gbit/s; half of the cores are left to the model.
size_t NumThreads(int shards) {
  const int cores = std::thread::hardware_concurrency();
  return std::clamp(cores / 2, 1, std::max(1, shards));
}

// A core for each lane, as far as there are any: to receive is to copy.
size_t NumLoops(int lanes) {
  const int cores = std::thread::hardware_concurrency();
  return std::clamp(cores, 1, std::max(1, lanes));
}

ShardedParameterClient::ShardedParameterClient(
    const wire::GetPlacementResponse& placement, OperationPlan plan,
    RowOperations rows, std::vector<std::string> variables,
    std::vector<std::string> tables, const Options& options, Clock& clock,
    MetricsRegistry& metrics)
    : plan_(std::move(plan)),
      rows_(std::move(rows)),
      layout_(placement.layout()),
      variables_(std::move(variables)),
      tables_(std::move(tables)),
      options_(options),
      clock_(clock),
      encoder_(options.wire_encoding, options.push_share, plan_.elements()),
      threads_(NumThreads(placement.shard_size())),
      socket_loops_(
          NumLoops(placement.shard_size() * options.streams_per_shard)),
      row_pushes_(tables_.size()),
      placement_(placement),
      run_ids_({placement.run_id()}) {
  run_id_ = &run_ids_.back();
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
            .layout = placement.layout(),
            .ps_incarnation = placement.shard(i).incarnation(),
            .admission = placement.shard(i).admission(),
            .shared_memory = options.shared_memory,
            .tcp_lanes = options.tcp_lanes,
            .lane_retry = options.lane_retry,
            .callee = CalleeOf(placement.shard(i), options.trust),
            .trace = options.trace,
        },
        threads_[i % threads_.size()].queue(), LoopsOf(i), clock, link_metrics,
        [this] {
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
void ShardedParameterClient::AddDense(const std::shared_ptr<const Call>& call,
                                      const std::vector<Item>& items,
                                      Draft::Dense& operations) const {
  const auto planned = plan_.Operations(NumbersOf(items));
  operations.reserve(operations.size() + planned.size());
  for (const OperationPlan::Operation& plan : planned) {
    ShardOperation::Ranges ranges;
    ranges.reserve(plan.ranges.size());
    for (const OperationPlan::Range& range : plan.ranges) {
      ranges.push_back({.part = range.part,
                        .first = range.first,
                        .count = range.count,
                        .variable = items[range.item].variable,
                        .offset = range.offset});
      SetMemory(ranges.back(), items[range.item], range.offset);
    }
    operations.push_back({.call = call,
                          .shard = plan.shard,
                          .lane = plan.lane,
                          .exact = plan.untrained,
                          .subject = std::move(ranges)});
  }
}

std::unique_ptr<TrainingParameters::Pending> ShardedParameterClient::Pull(
    PullRequest pull) {
  if (absl::Status status = Check(pull.targets, pull.rows); !status.ok()) {
    return std::make_unique<DonePending>(status);
  }
  const auto call = std::make_shared<Call>();
  call->run_id = run_id_.load(std::memory_order_acquire);
  call->min_updates = pull.min_updates;
  Draft draft;
  AddDense(call, pull.targets, draft.dense);
  draft.rows.reserve(pull.rows.size() * links_.size());
  for (const RowTarget& rows : pull.rows) {
    rows_.AddPulls(call, rows.table, rows.ids, rows.values,
                   LanesOfPulls(rows.table), draft.rows);
  }
  call->completion.Expect(draft.dense.size() + draft.rows.size());
  Start(call, draft);
  return std::make_unique<ExchangePending>(call, clock_);
}

std::unique_ptr<TrainingParameters::Pending> ShardedParameterClient::Push(
    PushRequest push) {
  PullRequest nothing;
  const auto call = StartPush(push, nothing);
  if (!call.ok()) return std::make_unique<DonePending>(call.status());
  return std::make_unique<ExchangePending>(*call, clock_);
}

TrainingParameters::PushAndPull ShardedParameterClient::PushPull(
    PushRequest push, PullRequest pull) {
  if (push.sync.has_value() || pull.min_updates > 0) {
    return TrainingParameters::PushPull(std::move(push), std::move(pull));
  }
  const size_t wanted = pull.targets.size() + pull.rows.size();
  const auto call = StartPush(push, pull);
  if (!call.ok()) {
    return {std::make_unique<DonePending>(call.status()),
            std::make_unique<DonePending>(call.status())};
  }
  auto pushed = std::make_unique<ExchangePending>(*call, clock_);
  const size_t left = pull.targets.size() + pull.rows.size();
  if (left == wanted) return {std::move(pushed), Pull(std::move(pull))};
  auto values = std::make_unique<ExchangePending>(*call, clock_);
  if (left == 0) return {std::move(pushed), std::move(values)};
  return {std::move(pushed),
          std::make_unique<JoinedPending>(std::move(values),
                                          Pull(std::move(pull)), clock_)};
}

absl::StatusOr<std::shared_ptr<const Call>> ShardedParameterClient::StartPush(
    PushRequest& push, PullRequest& pull) {
  RETURN_IF_ERROR(Check(push.gradients, push.rows));
  RETURN_IF_ERROR(Check(pull.targets, pull.rows));
  const auto call = std::make_shared<Call>();
  call->is_push = true;
  call->run_id = run_id_.load(std::memory_order_acquire);
  if (push.sync.has_value()) {
    call->sync = {.step = push.sync->step, .replica = push.sync->replica};
  }
  Draft draft;
  std::vector<PushPullItem> common;
  if (!pull.targets.empty()) {
    common = TakeCommonVariables(plan_.num_variables(), push, pull);
  }
  // A variable's earlier gradients come first.
  AddDense(call, push.gradients, draft.dense);
  AddDense(call, common, draft.dense);
  draft.rows.reserve(push.rows.size() * links_.size());
  for (size_t i = 0; i < push.rows.size(); ++i) {
    const RowGradient& rows = push.rows[i];
    RETURN_IF_ERROR(rows_.AddPushes(
        call, rows, TakeCommonRows(push, i, pull.rows), draft.rows));
  }
  call->completion.Expect(draft.dense.size() + draft.rows.size());
  for (const RowGradient& rows : push.rows) row_pushes_.Add(rows.table, call);
  Start(call, draft);
  return call;
}

// To each shard, operations of variables come first. The completion expects
// them already.
void ShardedParameterClient::Start(const std::shared_ptr<const Call>& call,
                                   Draft& draft) {
  SortByShard(draft.dense, [](const auto& dense) { return dense.shard; });
  SortByShard(draft.rows, [](const auto& rows) { return rows.asked.shard; });
  auto dense = draft.dense.begin();
  auto rows = draft.rows.begin();
  absl::InlinedVector<ShardLink::OperationPtr, 8> operations;
  if (!encoder_.encodes()) {
    operations.reserve(draft.dense.size() + draft.rows.size());
  }
  for (size_t shard = 0; shard < links_.size(); ++shard) {
    const auto send = [&] {
      if (!operations.empty()) links_[shard]->Send(operations);
      operations.clear();
    };
    const auto add = [&](EncodedOperation operation) {
      operations.push_back(
          std::make_shared<const EncodedOperation>(std::move(operation)));
      // What is encoded is sent while the next operation is being encoded.
      if (encoder_.encodes()) send();
    };
    for (; dense != draft.dense.end() && dense->shard == shard; ++dense) {
      add(encoder_.Encode(std::move(*dense)));
    }
    for (; rows != draft.rows.end() && rows->asked.shard == shard; ++rows) {
      add(std::move(*rows));
    }
    send();
  }
}

void ShardedParameterClient::ShardsAreLoading(absl::Span<const int> shards) {
  for (const int shard : shards) {
    if (shard < 0 || static_cast<size_t>(shard) >= links_.size()) continue;
    links_[shard]->NoteLoading();
  }
}

absl::Status ShardedParameterClient::Update(
    const wire::GetPlacementResponse& placement) {
  ASSIGN_OR_RETURN(
      const OperationPlan plan,
      OperationPlan::Make(placement, variables_, PlanLimits(options_)));
  ASSIGN_OR_RETURN(
      const RowOperations rows,
      RowOperations::Make(placement, tables_, RowLimits(options_)));
  if (placement.layout() != layout_ || !plan.SameSharding(plan_) ||
      !rows.SameTables(rows_)) {
    return absl::InvalidArgumentError(
        "the chief's new placement splits the variables differently; start "
        "this worker again");
  }
  wire::GetPlacementResponse old;
  {
    absl::MutexLock lock(&mu_);
    old = std::exchange(placement_, placement);
    if (run_ids_.back() != placement.run_id()) {
      run_ids_.push_back(placement.run_id());
    }
    run_id_.store(&run_ids_.back(), std::memory_order_release);
  }
  for (int i = 0; i < placement.shard_size(); ++i) {
    const wire::Shard& shard = placement.shard(i);
    if (shard.address() != old.shard(i).address() ||
        shard.incarnation() != old.shard(i).incarnation()) {
      links_[i]->MoveTo(shard);
      ++moves_;
    }
  }
  return absl::OkStatus();
}

TrainingParameters::Awaited ShardedParameterClient::Unanswered() const {
  Awaited awaited = {.moves = moves_};
  for (const auto& link : links_) {
    if (link->HasUnanswered()) awaited.peers.push_back(link->name());
    awaited.away_since = std::min(awaited.away_since, link->away_since());
    awaited.is_cut |= link->IsCut();
    awaited.last_loading = std::max(awaited.last_loading, link->loading_at());
  }
  return awaited;
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
