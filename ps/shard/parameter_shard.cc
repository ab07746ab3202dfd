#include "ps/shard/parameter_shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ps/shard/operation_places.h"
#include "ps/sparse/received_rows.h"

namespace parasol {
namespace {

// Far from where counting would overflow.
constexpr int64_t kMaxUpdates = int64_t{1} << 62;
// Number of updates that a shard which was restored may be behind others.
constexpr int64_t kMaxAhead = int64_t{1} << 40;

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

// `pulled`: what chunks or a table have given, or a status with it.
template <typename Pulled>
absl::StatusOr<OperationResult> ResultOf(absl::StatusOr<Pulled> pulled) {
  RETURN_IF_ERROR(pulled.status());
  OperationResult result;
  SetPulled(*std::move(pulled), result);
  return result;
}

const absl::Status& StatusIn(const absl::Status& status) { return status; }
template <typename Value>
const absl::Status& StatusIn(const absl::StatusOr<Value>& result) {
  return result.status();
}

absl::Status NotSynchronous() {
  return absl::InvalidArgumentError(
      "a synchronous push that asks for values: pull them when the step is "
      "complete");
}

// Gradients of lower replicas always have room: a resend ends.
absl::Status NoRoom() {
  return absl::UnavailableError(
      "no memory is left for gradients that wait for those of lower replicas: "
      "send this one again, or raise --memory_limit_bytes");
}

// Reads the values of now, or when they have had `min_updates`.
template <typename Place>
void PullFrom(Place place, job::Encoding encoding, int64_t min_updates,
              CountedDone done) {
  if (min_updates == 0) return done(ResultOf(place.Pull(encoding, 0)));
  place.Keep();
  const auto kept = std::make_shared<const Place>(std::move(place));
  const auto latch = std::make_shared<Latch>(
      kept->size(), [kept, encoding, min_updates,
                     done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(OperationResult{.read = [kept, encoding, min_updates] {
          return ResultOf(kept->Pull(encoding, min_updates));
        }});
      });
  Released released;
  kept->NotifyAt(min_updates, latch, released);
}

}  // namespace

ParameterShard::ParameterShard(std::unique_ptr<DenseParts> dense,
                               std::vector<std::unique_ptr<SparseTable>> tables,
                               std::optional<wire::SyncSpec> sync,
                               const DedupWindows& dedup)
    : dense_(std::move(dense)),
      tables_(std::move(tables)),
      sync_(std::move(sync)),
      gate_(dedup) {}

void ParameterShard::Execute(uint64_t worker_incarnation,
                             const wire::Operation& operation,
                             absl::Span<const PayloadView> payloads,
                             CountedDone done, uint64_t acknowledged,
                             PayloadMemory* memory) {
  const ReceivedPush push = {worker_incarnation, operation, payloads,
                             acknowledged, memory};
  switch (operation.kind_case()) {
    case wire::Operation::kPush:
      return PushDense(push, std::move(done));
    case wire::Operation::kRowPush:
      return PushRows(push, std::move(done));
    case wire::Operation::kPull:
      return PullDense(operation.pull(), std::move(done));
    case wire::Operation::kRowPull:
      return PullRows(operation.row_pull(), payloads, std::move(done));
    case wire::Operation::KIND_NOT_SET:
      break;
  }
  done(absl::InvalidArgumentError("neither a push nor a pull"));
}

void ParameterShard::PushDense(const ReceivedPush& push, CountedDone done) {
  const wire::Push& message = push.operation.push();
  const absl::Status mode = CheckMode(message.has_sync());
  if (!mode.ok()) return done(mode);
  const absl::StatusOr<DenseParts::Gradients> gradients =
      dense_->Parse(message, push.payloads);
  if (!gradients.ok()) return done(gradients.status());
  PushTo(ChunkGradients{*dense_, *gradients}, push, message, std::move(done));
}

void ParameterShard::PushRows(const ReceivedPush& push, CountedDone done) {
  const wire::RowPush& message = push.operation.row_push();
  const absl::Status mode = CheckMode(message.has_sync());
  if (!mode.ok()) return done(mode);
  const absl::StatusOr<SparseTable*> table = TableNumber(message.table());
  if (!table.ok()) return done(table.status());
  const absl::StatusOr<ReceivedRows> gradients =
      (*table)->Parse(message, push.payloads);
  if (!gradients.ok()) return done(gradients.status());
  PushTo(TableGradients{**table, *gradients}, push, message, std::move(done));
}

void ParameterShard::PullDense(const wire::Pull& pull, CountedDone done) {
  const absl::Status wait = CheckWait(pull.min_updates());
  if (!wait.ok()) return done(wait);
  const absl::StatusOr<job::Encoding> encoding = EncodingOf(pull.encoding());
  if (!encoding.ok()) return done(encoding.status());
  absl::StatusOr<DenseParts::Ranges> ranges = dense_->Resolve(pull);
  if (!ranges.ok()) return done(ranges.status());
  PullFrom(ChunkPull{*dense_, *std::move(ranges)}, *encoding,
           pull.min_updates(), std::move(done));
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
  PullFrom(TablePull{**table, *std::move(ids)}, *encoding, pull.min_updates(),
           std::move(done));
}

template <typename Message, typename Place>
void ParameterShard::PushTo(const Place& place, const ReceivedPush& push,
                            const Message& message, CountedDone done) {
  if (!message.has_sync()) {
    return Acknowledge(message.with_values()
                           ? ApplyAndPull(place, push, message)
                           : Apply(place, push, message),
                       std::move(done));
  }
  if (message.with_values()) return done(NotSynchronous());
  const absl::StatusOr<StepPush> step = CheckStep(message.sync());
  if (!step.ok()) return done(step.status());
  const absl::Status not_ahead = place.CheckNotAhead(step->step);
  if (!not_ahead.ok()) return done(not_ahead);
  ContributeStep(place, push, *step, std::move(done));
}

template <typename Message, typename Place>
absl::StatusOr<OperationResult> ParameterShard::Apply(const Place& place,
                                                      const ReceivedPush& push,
                                                      const Message& message) {
  return gate_.ApplyOnce(
      push.worker_incarnation, message.sequence(), push.acknowledged, [&] {
        return ApplyKept(push, std::nullopt, [&] { return place.Apply(); });
      });
}

template <typename Message, typename Place>
absl::StatusOr<OperationResult> ParameterShard::ApplyAndPull(
    const Place& place, const ReceivedPush& push, const Message& message) {
  ASSIGN_OR_RETURN(const job::Encoding encoding,
                   EncodingOf(message.encoding()));
  absl::StatusOr<typename Place::Pulled> pulled;
  ASSIGN_OR_RETURN(
      OperationResult result,
      gate_.ApplyOnce(push.worker_incarnation, message.sequence(),
                      push.acknowledged, [&]() -> absl::StatusOr<UpdateBounds> {
                        pulled = ApplyKept(push, std::nullopt, [&] {
                          return place.ApplyAndPull(encoding);
                        });
                        RETURN_IF_ERROR(pulled.status());
                        return pulled->updates;
                      }));
  // What was applied before is looked up alone.
  if (result.duplicate) pulled = place.Pull(encoding);
  RETURN_IF_ERROR(pulled.status());
  SetPulled(*std::move(pulled), result);
  return result;
}

template <typename Place>
void ParameterShard::ContributeStep(const Place& place,
                                    const ReceivedPush& push,
                                    const StepPush& step, CountedDone done) {
  const size_t places = place.size();
  const auto entries = std::make_shared<StepEntries>();
  const auto answer = std::make_shared<const CountedDone>(std::move(done));
  // One more than the places: `entries` are complete before it calls back.
  const auto latch = std::make_shared<Latch>(
      places + 1, [this, entries, places, updates = place.Updates(),
                   answer](const Latch::Outcome& outcome) {
        if (entries->no_room > 0) return;  // it was answered below
        if (!outcome.status.ok()) return (*answer)(outcome.status);
        const UpdateBounds bounds = updates();
        Acknowledge(
            OperationResult{.duplicate = entries->duplicates == places,
                            .stale = entries->stale > 0 || outcome.dropped,
                            .min_updates = bounds.min,
                            .max_updates = bounds.max},
            *answer);
      });
  absl::Status entered;
  {
    Released released;
    gate_.Enter([&] {
      entered = ApplyKept(push, step.step, [&] {
        *entries = place.Contribute(step, latch, released);
        return absl::OkStatus();
      });
      // The standby may have had the room, and taken the gradient.
      if (entries->no_room > 0 && feed_ != nullptr) feed_->End();
    });
  }
  // Nothing has the latch then.
  if (!entered.ok()) return (*answer)(entered);
  if (entries->no_room > 0) (*answer)(NoRoom());
  latch->CountDown();
}

template <typename Call>
auto ParameterShard::ApplyKept(const ReceivedPush& push,
                               std::optional<int64_t> step, Call apply)
    -> decltype(apply()) {
  // Before the push is in the journal, where it takes its place among others.
  if (feed_ != nullptr) {
    RETURN_IF_ERROR(feed_->AwaitRoom(step));
  }
  std::optional<decltype(apply())> result;
  absl::Status fed;
  uint64_t last = 0;
  const auto feed = [&](uint64_t record) {
    last = record;
    const auto apply_once = [&] {
      result.emplace(apply());
      return StatusIn(*result).ok();
    };
    if (feed_ == nullptr) {
      apply_once();
    } else {
      fed = feed_->ApplyAndAppend(push, step, record, apply_once);
    }
  };
  if (journal_ == nullptr) {
    feed(0);
  } else {
    RETURN_IF_ERROR(journal_->AppendAndApply(push, feed));
  }
  RETURN_IF_ERROR(fed);
  if (journal_ != nullptr && feed_ != nullptr) {
    // The standby is to have nothing that the journal may lack.
    journal_->WhenKept([feed = feed_, last](const absl::Status& kept) {
      if (kept.ok()) feed->NoteKept(last);
    });
  }
  return *std::move(result);
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

bool ParameterShard::Marks(uint64_t number) {
  return std::all_of(
      tables_.begin(), tables_.end(), [number](const auto& table) {
        return table->rows().Marks(number, /*frees_expired=*/true);
      });
}

ShardSnapshot ParameterShard::TakeSnapshot(bool stays,
                                           const SnapshotTurn& turn) {
  std::optional<JournalPlace> journal;
  if (journal_ != nullptr) {
    journal = journal_->BeginCut(this->progress(), std::nullopt);
  }
  ShardSnapshot snapshot = Cut([] {}, stays, turn);
  snapshot.journal = journal;
  return snapshot;
}

ShardSnapshot ParameterShard::Cut(absl::FunctionRef<void()> at_cut, bool stays,
                                  const SnapshotTurn& turn) {
  std::vector<ChunkContents> contents;
  contents.reserve(dense_->chunks().size());
  std::vector<RowSnapshot> tables;
  DedupWindows windows;
  int64_t progress;
  gate_.WithoutPushes(
      [&] {
        at_cut();
        progress = this->progress();
        for (const std::unique_ptr<Chunk>& chunk : dense_->chunks()) {
          contents.push_back(chunk->Snapshot());
        }
        for (const std::unique_ptr<SparseTable>& table : tables_) {
          tables.push_back(table->TakeSnapshot(turn));
        }
        windows = gate_.Windows();
      },
      stays);
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
  absl::MutexLock lock(&hold_mu_);
  return gate_.stays() || stays_at_ < INT64_MAX;
}

void ParameterShard::GoOn() {
  gate_.GoOn();
  Released released;
  absl::MutexLock lock(&hold_mu_);
  stays_at_ = INT64_MAX;
  HoldAt(stays_at_, released);
}

void ParameterShard::HoldAt(int64_t updates, Released& released) {
  if (!sync_.has_value()) return;
  // It may make an update: not while TakeRules() changes the optimizers.
  gate_.Enter([&] {
    dense_->Hold(updates, released);
    for (const std::unique_ptr<SparseTable>& table : tables_) {
      table->Hold(updates, released);
    }
  });
}

absl::StatusOr<std::unique_ptr<StepSnapshot>> ParameterShard::BeginSnapshotAt(
    int64_t updates, bool stays, const SnapshotTurn& turn) {
  RETURN_IF_ERROR(CheckCut(updates));
  auto snapshot =
      std::make_unique<StepSnapshot>(*dense_, tables_, updates, turn);
  if (journal_ != nullptr) {
    // One more: the end of a hold may make an update meanwhile.
    snapshot->SetJournal(journal_->BeginCut(progress() + 1, updates));
  }
  if (stays) {
    absl::MutexLock lock(&hold_mu_);
    stays_at_ = updates;
  }
  EndHold();
  return snapshot;
}

void ParameterShard::Seal() { gate_.Seal(); }

int64_t ParameterShard::progress() const {
  if (!sync_.has_value()) return gate_.applied();
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

ParameterShard::Bytes ParameterShard::bytes() const {
  Bytes bytes = {.values = dense_->value_bytes(),
                 .slots = dense_->slot_bytes()};
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    bytes.rows += table->memory_bytes();
  }
  return bytes;
}

}  // namespace parasol
