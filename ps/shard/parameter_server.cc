#include "ps/shard/parameter_server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/trust/process_secret.h"
#include "google/protobuf/util/message_differencer.h"
#include "ps/shard/load_shard.h"

namespace parasol {
namespace {

using ::google::protobuf::util::MessageDifferencer;

// The chief has resent a Load that is still running.
constexpr absl::Duration kLoadWait = absl::Minutes(10);

// The order of which both chief and checkpoint may be others.
wire::LoadRequest WithoutSource(wire::LoadRequest order) {
  order.clear_checkpoint();
  order.clear_global_step();
  order.mutable_order()->clear_incarnation();
  order.mutable_order()->clear_chief_epoch();
  order.mutable_order()->clear_number();
  if (order.has_standby()) order.mutable_standby()->Clear();
  return order;
}

// The order without what a shard can take over in place.
wire::LoadRequest WithoutRules(const wire::LoadRequest& order) {
  wire::LoadRequest form = WithoutSource(order);
  form.clear_seed();
  form.clear_optimizer();
  form.clear_journal();
  form.clear_standby();
  for (wire::PartSpec& part : *form.mutable_part()) {
    part.clear_initializer();
    // Whether it has one of its own, and is trained, stays.
    if (!part.has_optimizer()) part.clear_learning_rate_multiplier();
    if (part.has_optimizer() && part.has_learning_rate_multiplier()) {
      part.set_learning_rate_multiplier(1);
    }
    if (part.has_optimizer()) part.mutable_optimizer()->Clear();
  }
  for (wire::TableSpec& table : *form.mutable_table()) {
    table.clear_initializer();
    table.clear_optimizer();
    table.clear_learning_rate_multiplier();
    // Other numbers are taken over; whether there are any stays.
    const bool counts = table.admission().min_count() > 1;
    const bool ages = table.eviction().idle_steps() > 0;
    const bool has_limit = table.eviction().max_rows() > 0;
    table.clear_admission();
    table.clear_eviction();
    if (counts) table.mutable_admission()->set_min_count(2);
    if (ages) table.mutable_eviction()->set_idle_steps(1);
    if (has_limit) table.mutable_eviction()->set_max_rows(1);
    if (table.has_tier()) table.mutable_tier()->set_memory_bytes(1);
  }
  return form;
}

// Returns true if a layout's fingerprint says that both have the same parts.
bool IsSameShard(const wire::LoadRequest& a, const wire::LoadRequest& b) {
  return a.run_id() == b.run_id() && a.order().layout() == b.order().layout() &&
         a.shard() == b.shard() && a.num_shards() == b.num_shards();
}

size_t SizeOf(const PayloadView& payload) { return payload.size(); }
size_t SizeOf(const PayloadRef& payload) { return payload.size; }

template <typename Payloads>
uint64_t BytesOf(const Payloads& payloads) {
  uint64_t bytes = 0;
  for (const auto& payload : payloads) bytes += SizeOf(payload);
  return bytes;
}

wire::LoadResponse SizesOf(const ParameterShard& parameters) {
  wire::LoadResponse response;
  response.set_value_bytes(parameters.bytes().values);
  response.set_slot_bytes(parameters.bytes().slots);
  return response;
}

}  // namespace

ParameterServer::ParameterServer(Options options, Clock& clock,
                                 PsMetrics& metrics)
    : options_(std::move(options)),
      public_number_(PublicNumber(options_.incarnation)),
      clock_(clock),
      metrics_(metrics),
      gate_(options_.task, options_.incarnation),
      cut_hold_(clock),
      watch_(clock.Now()) {}

ParameterServer::~ParameterServer() { Hold(nullptr); }

void ParameterServer::EndWaits() const {
  const std::shared_ptr<Shard> held = shard();
  if (held == nullptr) return;
  // Whoever waits for the standby sends its push again, to the next ps.
  if (held->parameters->feed() != nullptr) held->parameters->feed()->Close();
  Abandon(held);
}

void ParameterServer::Seal() const {
  std::shared_ptr<Shard> held;
  {
    absl::MutexLock lock(&mu_);
    is_sealed_ = true;
    held = shard_;
  }
  if (held != nullptr) held->parameters->Seal();
}

void ParameterServer::Abandon(std::shared_ptr<Shard> shard) const {
  if (shard == nullptr) return;
  shard->parameters->Abandon(absl::UnavailableError(absl::StrCat(
      options_.task, " no longer holds run ", shard->order.run_id())));
}

absl::StatusOr<wire::LoadResponse> ParameterServer::Load(
    const wire::LoadRequest& request) {
  RETURN_IF_ERROR(gate_.Check(request.order()));
  if (request.run_id().empty()) {
    return absl::InvalidArgumentError("the load request names no run_id");
  }
  if (request.has_standby() && options_.on_loaded == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the load request names a standby, but ", options_.task,
                     " makes none of its shard"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Shard> held, BeginLoad(request.order()));
  absl::Cleanup end = [this] { EndLoad(); };
  const std::weak_ptr<ParameterShard> before =
      held == nullptr ? nullptr : held->parameters;
  const bool is_held =
      held != nullptr && MessageDifferencer::Equals(WithoutSource(held->order),
                                                    WithoutSource(request));
  RETURN_IF_ERROR(is_held ? gate_.Accept(request.order())
                          : LoadAnew(request, std::move(held)));
  const std::shared_ptr<Shard> loaded = shard();
  // Pushes are acknowledged when the chief has kept what the standby is.
  if (loaded->parameters->feed() != nullptr) {
    const bool is_new = loaded->parameters != before.lock();
    options_.on_loaded(loaded->parameters, request, is_new);
  }
  loaded->parameters->GoOn();
  wire::LoadResponse response = SizesOf(*loaded->parameters);
  // With each answer: one may be lost.
  response.set_lost(lost_);
  return response;
}

absl::Status ParameterServer::LoadAnew(const wire::LoadRequest& request,
                                       std::shared_ptr<Shard> held) {
  const absl::Time start = clock_.Now();
  ASSIGN_OR_RETURN(const LoadLimits limits, LimitsFor(request));
  ASSIGN_OR_RETURN(ShardLoad load, ShardLoad::Create(request, limits),
                   _ << options_.task);
  const bool is_same_form =
      held != nullptr && MessageDifferencer::Equals(WithoutRules(held->order),
                                                    WithoutRules(request));
  if (!is_same_form && held != nullptr && IsSameShard(held->order, request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the load request is for the shard of run ",
                     request.run_id(), " that ", options_.task,
                     " holds, in its layout, but has other parts, "
                     "tables or replicas"));
  }
  // A journal follows a checkpoint.
  const bool has_form = is_same_form &&
                        held->order.journal() == request.journal() &&
                        held->order.has_standby() == request.has_standby();
  if (!has_form) {
    RETURN_IF_ERROR(load.Open()) << options_.task;
  }
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  if (has_form && load.GiveRulesTo(*held->parameters).ok()) {
    Hold(std::make_shared<Shard>(request, *held));
    LOG(INFO) << "keeps the values of run " << request.run_id()
              << ", and goes on with the chief's new job";
    return absl::OkStatus();
  }
  if (has_form) {
    RETURN_IF_ERROR(load.Open()) << options_.task;
  }
  lost_.clear();
  ASSIGN_OR_RETURN(std::optional<Standby> standby, TakeStandby(request),
                   _ << options_.task);
  // There may not be memory for both.
  held.reset();
  Hold(nullptr);
  const bool is_of_standby = standby.has_value();
  std::shared_ptr<ParameterShard> parameters;
  if (is_of_standby) {
    JournalEnd in_journal;
    if (auto* const state = std::get_if<ShardState>(&*standby)) {
      in_journal = state->in_journal();
      ASSIGN_OR_RETURN(parameters, ShardFrom(std::move(*state), request),
                       _ << options_.task);
    } else {
      const auto& taken = std::get<StandbyShard>(*standby);
      in_journal = taken.in_journal;
      parameters = taken.shard;
      RETURN_IF_ERROR(load.GiveRulesTo(*parameters)) << options_.task;
    }
    RETURN_IF_ERROR(load.GoOnWithJournal(*parameters, in_journal))
        << options_.task;
  } else {
    ASSIGN_OR_RETURN(parameters, load.Run(), _ << options_.task);
  }
  NoteJournal(load.restored_journal(), is_of_standby);
  if (request.has_standby()) {
    parameters->KeepFeed(std::make_shared<StandbyFeed>(clock_));
  }
  Hold(std::make_shared<Shard>(request, std::move(parameters),
                               /*has_unsaved=*/is_of_standby));
  taken_.reset();
  const absl::Duration duration = clock_.Now() - start;
  Trace("load", start);
  metrics_.load_duration_seconds.Observe(absl::ToDoubleSeconds(duration));
  LOG(INFO) << "loaded " << request.part_size() << " parts of run "
            << request.run_id() << " from "
            << (is_of_standby
                    ? absl::StrCat("its standby on ", request.standby().task())
                : request.checkpoint().empty() ? "initial values"
                                               : request.checkpoint())
            << " in " << absl::FormatDuration(duration);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ParameterServer::Shard>>
ParameterServer::BeginLoad(const wire::OrderHeader& order) {
  absl::MutexLock lock(&mu_);
  auto is_idle = [this]()
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !loading_; };
  if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_idle), kLoadWait)) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " is still loading"));
  }
  // Again: another chief may have come while this order waited.
  RETURN_IF_ERROR(gate_.Check(order));
  loading_ = true;
  loading_since_ = clock_.Now();
  return shard_;
}

void ParameterServer::Hold(std::shared_ptr<Shard> shard) {
  std::shared_ptr<Shard> replaced;
  {
    absl::MutexLock lock(&mu_);
    replaced = std::exchange(shard_, shard);
    // Nothing waits for what has just been loaded.
    const bool is_new =
        shard != nullptr &&
        (replaced == nullptr || replaced->parameters != shard->parameters);
    if (is_new && is_sealed_) shard->parameters->Seal();
    if (is_new && shard->order.run_id() == told_run_) {
      shard->parameters->GoOnAt(told_steps_);
    }
  }
  if (replaced == nullptr) return;
  if (shard != nullptr && shard->parameters == replaced->parameters) return;
  // What waits for it refers to this server.
  PushJournal* const journal = replaced->parameters->journal();
  if (journal != nullptr) journal->Close();
  if (replaced->parameters->feed() != nullptr) {
    options_.on_loaded(nullptr, replaced->order, /*is_new=*/false);
    replaced->parameters->feed()->Close();
  }
  Abandon(std::move(replaced));
}

void ParameterServer::EndLoad() {
  const std::shared_ptr<Shard> held = shard();
  const wire::LoadResponse sizes =
      held == nullptr ? wire::LoadResponse() : SizesOf(*held->parameters);
  metrics_.value_bytes.Set(sizes.value_bytes());
  metrics_.slot_bytes.Set(sizes.slot_bytes());
  metrics_.row_bytes.Set(held == nullptr ? 0 : held->parameters->bytes().rows);
  watch_.StartOver();
  absl::MutexLock lock(&mu_);
  loading_ = false;
}

absl::StatusOr<wire::PrepareSnapshotResponse> ParameterServer::PrepareSnapshot(
    const wire::PrepareSnapshotRequest& request) {
  RETURN_IF_ERROR(gate_.Check(request.order()));
  const absl::StatusOr<std::shared_ptr<Shard>> shard =
      ShardOf(request.run_id(), request.order().layout());
  if (!shard.ok()) {
    return absl::FailedPreconditionError(shard.status().message());
  }
  RETURN_IF_ERROR((*shard)->parameters->CheckCut(std::nullopt))
      << options_.task;
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  ASSIGN_OR_RETURN(const UpdateBounds updates,
                   cut_hold_.Hold((*shard)->parameters), _ << options_.task);
  wire::PrepareSnapshotResponse response;
  response.set_min_updates(updates.min);
  response.set_max_updates(updates.max);
  return response;
}

void ParameterServer::GoOnAt(absl::string_view run_id, int64_t steps) {
  std::shared_ptr<Shard> shard;
  {
    absl::MutexLock lock(&mu_);
    told_run_ = std::string(run_id);
    told_steps_ = steps;
    shard = shard_;
  }
  if (shard != nullptr && shard->order.run_id() == run_id) {
    shard->parameters->GoOnAt(steps);
  }
}

void ParameterServer::Execute(const ReceivedMessage& message, size_t operation,
                              OperationDone done, PayloadMemory* memory) {
  const absl::StatusOr<std::shared_ptr<Shard>> shard = ShardFor(message);
  if (!shard.ok()) return Reject(shard.status(), done);
  ParameterShard& parameters = *(*shard)->parameters;
  const wire::Operation& order = message.operation(operation);
  const absl::Span<const PayloadView> payloads = message.payloads(operation);
  const bool is_push = order.has_push() || order.has_row_push();
  const bool is_of_rows = order.has_row_push() || order.has_row_pull();
  const absl::Time now = clock_.Now();
  OperationWatch::Running running(watch_, now);
  if (is_push) WatchPush(message.worker_incarnation(), order, payloads, now);
  parameters.Execute(
      message.worker_incarnation(), order, payloads,
      is_push ? CountedPush(*shard, BytesOf(payloads), std::move(done))
              : CountedPull(*shard, std::move(done)),
      std::min(message.acknowledged(), DedupIndex::kReplayed - 1), memory);
  running.End(clock_.Now());
  TraceOperation(order, now, is_push ? BytesOf(payloads) : 0);
  if (is_of_rows) metrics_.row_bytes.Set(parameters.bytes().rows);
}

std::shared_ptr<ParameterServer::Shard> ParameterServer::shard() const {
  absl::ReaderMutexLock lock(&mu_);
  return shard_;
}

absl::StatusOr<std::shared_ptr<ParameterServer::Shard>>
ParameterServer::ShardFor(const ReceivedMessage& message) const {
  if (message.ps_incarnation() != 0 &&
      message.ps_incarnation() != public_number_) {
    return absl::UnavailableError(absl::StrFormat(
        "the message is meant for process %016x, but %s is process %016x",
        message.ps_incarnation(), options_.task, public_number_));
  }
  return ShardOf(message.run_id(), message.layout());
}

absl::StatusOr<std::shared_ptr<ParameterServer::Shard>>
ParameterServer::ShardOf(absl::string_view run_id, uint64_t layout) const {
  absl::ReaderMutexLock lock(&mu_);
  if (shard_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " holds no variables yet: ",
                     loading_ ? "it is loading them"
                              : "waiting for the chief's load order"));
  }
  const wire::LoadRequest& held = shard_->order;
  if (held.run_id() != run_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.task, " holds run ", held.run_id(), ", not ", run_id));
  }
  if (layout != 0 && held.order().layout() != layout) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s holds run %s in layout %016x, not %016x",
                        options_.task, run_id, held.order().layout(), layout));
  }
  return shard_;
}

CountedDone ParameterServer::CountedPush(std::shared_ptr<Shard> shard,
                                         uint64_t bytes, OperationDone done) {
  return [this, shard = std::move(shard), bytes, start = clock_.Now(),
          done = std::move(done)](absl::StatusOr<OperationResult> result) {
    if (!result.ok()) return Reject(result.status(), done);
    if (result->lost > 0) NoteLost(result->lost);
    if (result->duplicate) {
      metrics_.duplicate_pushes_total.Add();
    } else if (result->stale) {
      metrics_.stale_pushes_total.Add();
    } else {
      metrics_.apply_duration_seconds.Observe(
          absl::ToDoubleSeconds(clock_.Now() - start));
      metrics_.pushes_total.Add();
      metrics_.push_bytes_total.Add(bytes);
    }
    if (!result->payloads.empty()) CountPull(result);
    done(std::move(result));
  };
}

void ParameterServer::NoteLost(uint64_t pushes) {
  metrics_.lost_pushes_total.Add(static_cast<double>(pushes));
  LOG(WARNING) << pushes
               << " pushes that were acknowledged to a worker are lost: they "
                  "are not in what this ps was loaded from; "
                  "docs/durability.md says how to keep them";
}

CountedDone ParameterServer::CountedPull(std::shared_ptr<Shard> shard,
                                         OperationDone done) {
  return [this, shard = std::move(shard),
          done = std::move(done)](absl::StatusOr<OperationResult> result) {
    if (result.ok() && result->read != nullptr) {
      // The pull that is read later needs the shard, too.
      return done(OperationResult{
          .read = [this, shard, read = std::move(result->read)] {
            absl::StatusOr<OperationResult> result = read();
            CountPull(result);
            return result;
          }});
    }
    CountPull(result);
    done(std::move(result));
  };
}

void ParameterServer::CountPull(const absl::StatusOr<OperationResult>& result) {
  if (!result.ok()) return metrics_.CountRejected(result.status().code());
  metrics_.pulls_total.Add();
  metrics_.pull_bytes_total.Add(BytesOf(result->payloads));
}

void ParameterServer::Reject(const absl::Status& status,
                             const OperationDone& done) {
  metrics_.CountRejected(status.code());
  done(status);
}

}  // namespace parasol
