#include "ps/shard/parameter_shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ps/dense/received_gradient.h"
#include "ps/sparse/received_rows.h"

namespace parasol {
namespace {

// Far from where counting would overflow.
constexpr int64_t kMaxUpdates = int64_t{1} << 62;
// Number of updates that a shard which was restored may be behind others.
constexpr int64_t kMaxAhead = int64_t{1} << 40;

OperationResult ResultOf(const UpdateBounds& updates) {
  return {.min_updates = updates.min, .max_updates = updates.max};
}

// Gives the result the values that were pulled, and their updates.
void SetPulled(DenseParts::Pulled pulled, OperationResult& result) {
  result.min_updates = pulled.updates.min;
  result.max_updates = pulled.updates.max;
  result.payloads = std::move(pulled.payloads);
}

void SetPulled(SparseTable::Pulled pulled, OperationResult& result) {
  result.min_updates = pulled.updates.min;
  result.max_updates = pulled.updates.max;
  result.payloads.push_back(std::move(pulled.payload));
}

OperationResult ResultOf(DenseParts::Pulled pulled) {
  OperationResult result;
  SetPulled(std::move(pulled), result);
  return result;
}

absl::StatusOr<OperationResult> ResultOf(
    absl::StatusOr<SparseTable::Pulled> pulled) {
  RETURN_IF_ERROR(pulled.status());
  OperationResult result;
  SetPulled(*std::move(pulled), result);
  return result;
}

absl::Status NotSynchronous() {
  return absl::InvalidArgumentError(
      "a synchronous push that asks for values: pull them when the step is "
      "complete");
}

absl::Status BeingApplied(uint64_t sequence) {
  return absl::UnavailableError(absl::StrCat(
      "push ", sequence, " came on another stream and is being applied"));
}

// Gradients of lower replicas always have room: a resend ends.
absl::Status NoRoom() {
  return absl::UnavailableError(
      "no memory is left for gradients that wait for those of lower replicas: "
      "send this one again, or raise --memory_limit_bytes");
}

}  // namespace

ParameterShard::ParameterShard(std::unique_ptr<DenseParts> dense,
                               std::vector<std::unique_ptr<SparseTable>> tables,
                               std::optional<wire::SyncSpec> sync,
                               const DedupWindows& dedup)
    : dense_(std::move(dense)),
      tables_(std::move(tables)),
      sync_(std::move(sync)) {
  absl::MutexLock lock(&dedup_mu_);
  dedup_.Restore(dedup);
}

void ParameterShard::Push(uint64_t worker_incarnation, const wire::Push& push,
                          absl::Span<const PayloadView> payloads,
                          CountedDone done) {
  const absl::Status mode = CheckMode(push.has_sync());
  if (!mode.ok()) return done(mode);
  const absl::StatusOr<DenseParts::Gradients> gradients =
      dense_->Parse(push, payloads);
  if (!gradients.ok()) return done(gradients.status());
  if (!push.has_sync()) {
    absl::StatusOr<OperationResult> result =
        ApplyOnce(worker_incarnation, push.sequence(),
                  [&] { return dense_->Apply(*gradients); });
    if (result.ok() && push.with_values()) {
      // The encoding is a known one: the gradients were parsed by it.
      SetPulled(dense_->Pull(gradients->ranges, *EncodingOf(push.encoding()),
                             /*min_updates=*/0),
                *result);
    }
    return done(std::move(result));
  }
  if (push.with_values()) return done(NotSynchronous());
  const absl::StatusOr<StepPush> step = CheckStep(push.sync());
  if (!step.ok()) return done(step.status());
  const DenseParts::Ranges& ranges = gradients->ranges;
  const absl::Status not_ahead = dense_->CheckNotAhead(ranges, step->step);
  if (!not_ahead.ok()) return done(not_ahead);
  ContributeStep(
      DenseParts::Chunks(ranges),
      [&](const std::shared_ptr<Latch>& latch, Released& released) {
        return dense_->Contribute(*step, *gradients, latch, released);
      },
      [this, ranges] { return dense_->Updates(ranges); }, std::move(done));
}

void ParameterShard::Pull(const wire::Pull& pull, CountedDone done) {
  const absl::Status wait = CheckWait(pull.min_updates());
  if (!wait.ok()) return done(wait);
  const absl::StatusOr<job::Encoding> encoding = EncodingOf(pull.encoding());
  if (!encoding.ok()) return done(encoding.status());
  absl::StatusOr<DenseParts::Ranges> ranges = dense_->Resolve(pull);
  if (!ranges.ok()) return done(ranges.status());
  if (pull.min_updates() == 0) {
    return done(ResultOf(dense_->Pull(*ranges, *encoding, 0)));
  }
  const size_t chunks = DenseParts::Chunks(*ranges);
  const auto latch = std::make_shared<Latch>(
      chunks, [this, ranges = *ranges, encoding = *encoding,
               min_updates = pull.min_updates(),
               done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(OperationResult{.read = [this, ranges, encoding, min_updates] {
          return ResultOf(dense_->Pull(ranges, encoding, min_updates));
        }});
      });
  Released released;
  dense_->NotifyAt(*ranges, pull.min_updates(), latch, released);
}

void ParameterShard::PushRows(uint64_t worker_incarnation,
                              const wire::RowPush& push,
                              absl::Span<const PayloadView> payloads,
                              CountedDone done) {
  const absl::Status mode = CheckMode(push.has_sync());
  if (!mode.ok()) return done(mode);
  const absl::StatusOr<SparseTable*> table = TableNumber(push.table());
  if (!table.ok()) return done(table.status());
  const absl::StatusOr<ReceivedRows> gradients =
      (*table)->Parse(push, payloads);
  if (!gradients.ok()) return done(gradients.status());
  if (!push.has_sync()) {
    return done(
        push.with_values()
            ? ApplyAndPullRows(worker_incarnation, push, **table, *gradients)
            : ApplyOnce(worker_incarnation, push.sequence(),
                        [&] { return (*table)->Apply(*gradients); }));
  }
  if (push.with_values()) return done(NotSynchronous());
  const absl::StatusOr<StepPush> step = CheckStep(push.sync());
  if (!step.ok()) return done(step.status());
  const absl::Status not_ahead = (*table)->CheckNotAhead(step->step);
  if (!not_ahead.ok()) return done(not_ahead);
  ContributeStep(
      1,
      [&](const std::shared_ptr<Latch>& latch, Released& released) {
        return (*table)->Contribute(*step, *gradients, latch, released);
      },
      [table = *table] { return table->updates(); }, std::move(done));
}

void ParameterShard::PullRows(const wire::RowPull& pull,
                              absl::Span<const PayloadView> payloads,
                              CountedDone done) {
  const absl::Status wait = CheckWait(pull.min_updates());
  if (!wait.ok()) return done(wait);
  const absl::StatusOr<job::Encoding> encoding = EncodingOf(pull.encoding());
  if (!encoding.ok()) return done(encoding.status());
  const absl::StatusOr<SparseTable*> table = TableNumber(pull.table());
  if (!table.ok()) return done(table.status());
  absl::StatusOr<ReceivedRows> ids = (*table)->Parse(pull, payloads);
  if (!ids.ok()) return done(ids.status());
  if (pull.min_updates() == 0) {
    return done(ResultOf((*table)->Pull(*ids, *encoding, 0)));
  }
  ids->KeepIds();
  const auto latch = std::make_shared<Latch>(
      1, [table = *table, encoding = *encoding,
          ids = std::make_shared<const ReceivedRows>(*std::move(ids)),
          min_updates = pull.min_updates(),
          done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(OperationResult{.read = [table, encoding, ids, min_updates] {
          return ResultOf(table->Pull(*ids, encoding, min_updates));
        }});
      });
  Released released;
  (*table)->NotifyAt(pull.min_updates(), latch, released);
}

absl::StatusOr<OperationResult> ParameterShard::ApplyAndPullRows(
    uint64_t worker_incarnation, const wire::RowPush& push, SparseTable& table,
    const ReceivedRows& gradients) {
  ASSIGN_OR_RETURN(const job::Encoding encoding, EncodingOf(push.encoding()));
  absl::StatusOr<SparseTable::Pulled> pulled;
  ASSIGN_OR_RETURN(OperationResult result,
                   ApplyOnce(worker_incarnation, push.sequence(),
                             [&]() -> absl::StatusOr<UpdateBounds> {
                               pulled = table.ApplyAndPull(gradients, encoding);
                               RETURN_IF_ERROR(pulled.status());
                               return pulled->updates;
                             }));
  // What was applied before is looked up alone.
  if (result.duplicate) pulled = table.Pull(gradients, encoding, 0);
  RETURN_IF_ERROR(pulled.status());
  SetPulled(*std::move(pulled), result);
  return result;
}

absl::StatusOr<OperationResult> ParameterShard::ApplyOnce(
    uint64_t worker_incarnation, uint64_t sequence,
    absl::FunctionRef<absl::StatusOr<UpdateBounds>()> apply) {
  absl::ReaderMutexLock applying(&snapshot_mu_);
  if (is_sealed_) {
    return absl::UnavailableError(
        "the ps is leaving: its successor takes the push");
  }
  if (stays_) {
    return absl::UnavailableError(
        "the chief, or a ps, leaves with a checkpoint: the push is taken when "
        "its successor is there");
  }
  {
    absl::MutexLock lock(&dedup_mu_);
    ASSIGN_OR_RETURN(const Claim claim,
                     dedup_.Mark(worker_incarnation, sequence));
    if (claim == Claim::kDuplicate) return OperationResult{.duplicate = true};
    if (claim == Claim::kUnderWay) return BeingApplied(sequence);
  }
  const absl::StatusOr<UpdateBounds> updates = apply();
  absl::MutexLock lock(&dedup_mu_);
  if (!updates.ok()) {
    dedup_.Unmark(worker_incarnation, sequence);
    return updates.status();
  }
  pushes_.fetch_add(1, std::memory_order_release);
  dedup_.Confirm(worker_incarnation, sequence);
  return ResultOf(*updates);
}

void ParameterShard::ContributeStep(size_t places, Contribute contribute,
                                    std::function<UpdateBounds()> updates,
                                    CountedDone done) {
  const auto entries = std::make_shared<StepEntries>();
  const auto answer = std::make_shared<const CountedDone>(std::move(done));
  // One more than the places: `entries` are complete before it calls back.
  const auto latch = std::make_shared<Latch>(
      places + 1, [entries, places, updates = std::move(updates),
                   answer](const Latch::Outcome& outcome) {
        if (entries->no_room > 0) return;  // it was answered below
        if (!outcome.status.ok()) return (*answer)(outcome.status);
        OperationResult result = ResultOf(updates());
        result.duplicate = entries->duplicates == places;
        result.stale = entries->stale > 0 || outcome.dropped;
        (*answer)(std::move(result));
      });
  {
    Released released;
    absl::ReaderMutexLock applying(&snapshot_mu_);
    *entries = contribute(latch, released);
    pushes_.fetch_add(1, std::memory_order_release);
  }
  if (entries->no_room > 0) (*answer)(NoRoom());
  latch->CountDown();
}

absl::Status ParameterShard::CheckMode(bool is_synchronous) const {
  if (is_synchronous == sync_.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      is_synchronous ? "a synchronous push, but the job is asynchronous"
                     : "a push without its step, but the job is synchronous");
}

absl::StatusOr<StepPush> ParameterShard::CheckStep(
    const wire::SyncStep& step) const {
  if (step.step() < 0 || step.step() > kMaxUpdates || step.replica() < 0 ||
      step.replica() >= sync_->total_replicas()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", step.step(), " of replica ", step.replica(),
                     ": there are ", sync_->total_replicas(), " replicas"));
  }
  return StepPush{.step = step.step(), .replica = step.replica()};
}

absl::Status ParameterShard::CheckWait(int64_t min_updates) const {
  const int64_t most = sync_.has_value() ? kMaxUpdates : 0;
  if (0 <= min_updates && min_updates <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a pull after ", min_updates, " updates, but the job is ",
                   sync_.has_value() ? "synchronous" : "asynchronous"));
}

absl::StatusOr<SparseTable*> ParameterShard::TableNumber(uint32_t table) const {
  if (table < tables_.size()) return tables_[table].get();
  return absl::InvalidArgumentError(
      absl::StrCat("table number ", table, " is not on this shard: it has ",
                   tables_.size()));
}

absl::Status ParameterShard::TakeRules(
    PartOptimizers optimizers,
    const std::vector<std::unique_ptr<RowTable>>& rows) {
  if (rows.size() != tables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        rows.size(), " sparse tables, but the shard has ", tables_.size()));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->slot_names() == tables_[i]->rows().slot_names()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", rows[i]->name(), "\" would have other slots than it has"));
  }
  absl::WriterMutexLock no_push(&snapshot_mu_);
  RETURN_IF_ERROR(dense_->UseOptimizers(std::move(optimizers)));
  for (size_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(tables_[i]->rows().TakeRulesOf(*rows[i]));
  }
  return absl::OkStatus();
}

ShardSnapshot ParameterShard::TakeSnapshot(bool stays) {
  std::vector<ChunkContents> contents;
  contents.reserve(dense_->chunks().size());
  std::vector<RowSnapshot> tables;
  DedupWindows windows;
  int64_t progress;
  {
    absl::WriterMutexLock no_push(&snapshot_mu_);
    stays_ |= stays;
    progress = this->progress();
    for (const std::unique_ptr<Chunk>& chunk : dense_->chunks()) {
      contents.push_back(chunk->Snapshot());
    }
    for (const std::unique_ptr<SparseTable>& table : tables_) {
      tables.push_back(table->TakeSnapshot());
    }
    absl::MutexLock lock(&dedup_mu_);
    windows = dedup_.Windows();
  }
  ShardSnapshot snapshot =
      NamedSnapshot(dense_->layout(), std::move(contents), std::move(tables));
  snapshot.dedup = std::move(windows);
  snapshot.progress = progress;
  return snapshot;
}

absl::Status ParameterShard::CheckCut(std::optional<int64_t> updates) const {
  if (!sync_.has_value()) {
    return absl::FailedPreconditionError(
        "a cut at one step, but the job is asynchronous");
  }
  if (!updates || (*updates >= 0 && *updates - progress() <= kMaxAhead)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a cut at ", *updates, " updates, but the shard has had ", progress()));
}

absl::StatusOr<UpdateBounds> ParameterShard::Hold() {
  RETURN_IF_ERROR(CheckCut(std::nullopt));
  UpdateBounds updates;
  Released released;
  absl::MutexLock lock(&hold_mu_);
  dense_->HoldNow(updates);
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    updates.Include(table->HoldNow());
  }
  // Nothing is past the largest number of updates: all may have as many.
  HoldAt(updates.max, released);
  return updates;
}

void ParameterShard::EndHold() {
  Released released;
  absl::MutexLock lock(&hold_mu_);
  HoldAt(stays_at_, released);
}

bool ParameterShard::stays() const {
  absl::MutexLock hold_lock(&hold_mu_);
  absl::ReaderMutexLock lock(&snapshot_mu_);
  return stays_ || stays_at_ < INT64_MAX;
}

void ParameterShard::GoOn() {
  {
    absl::WriterMutexLock lock(&snapshot_mu_);
    stays_ = false;
  }
  Released released;
  absl::MutexLock lock(&hold_mu_);
  stays_at_ = INT64_MAX;
  HoldAt(stays_at_, released);
}

void ParameterShard::HoldAt(int64_t updates, Released& released) {
  if (!sync_.has_value()) return;
  // It may make an update: not while TakeRules() changes the optimizers.
  absl::ReaderMutexLock applying(&snapshot_mu_);
  dense_->Hold(updates, released);
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    table->Hold(updates, released);
  }
}

void ParameterShard::GoOnAt(int64_t updates) {
  if (!sync_.has_value()) return;
  Released released;
  dense_->GoOnAt(updates, released);
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    table->GoOnAt(updates, released);
  }
}

absl::StatusOr<std::unique_ptr<StepSnapshot>> ParameterShard::BeginSnapshotAt(
    int64_t updates, bool stays) {
  RETURN_IF_ERROR(CheckCut(updates));
  auto snapshot = std::make_unique<StepSnapshot>(*dense_, tables_, updates);
  if (stays) {
    absl::MutexLock lock(&hold_mu_);
    stays_at_ = updates;
  }
  EndHold();
  return snapshot;
}

void ParameterShard::Seal() {
  absl::WriterMutexLock no_push(&snapshot_mu_);
  is_sealed_ = true;
}

int64_t ParameterShard::progress() const {
  if (!sync_.has_value()) return pushes_.load(std::memory_order_acquire);
  int64_t most = 0;
  for (const std::unique_ptr<Chunk>& chunk : dense_->chunks()) {
    if (!chunk->is_frozen()) most = std::max(most, chunk->updates());
  }
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    most = std::max(most, table->updates().max);
  }
  return most;
}

void ParameterShard::Abandon(const absl::Status& status) {
  Released released;
  dense_->Abandon(status, released);
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    table->Abandon(status, released);
  }
}

uint64_t ParameterShard::row_bytes() const {
  uint64_t bytes = 0;
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    bytes += table->memory_bytes();
  }
  return bytes;
}

}  // namespace parasol
