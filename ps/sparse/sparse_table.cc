#include "ps/sparse/sparse_table.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "ml/compression/half.h"
#include "ps/dense/received_gradient.h"
#include "ps/operation/operation.h"
#include "ps/step/non_finite.h"

namespace parasol {
namespace {

absl::Status CheckPayloads(size_t payloads, size_t want) {
  if (payloads == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(payloads, " payloads, not ", want));
}

PayloadRef Encoded(std::shared_ptr<float[]> values, size_t elements,
                   job::Encoding encoding) {
  const size_t bytes = EncodedBytes(encoding, elements);
  const void* data = values.get();
  if (encoding == job::FLOAT32) {
    return {.data = data, .size = bytes, .owner = std::move(values)};
  }
  auto encoded = std::make_shared_for_overwrite<std::byte[]>(bytes);
  Encode(encoding, absl::MakeConstSpan(values.get(), elements), encoded.get());
  data = encoded.get();
  return {.data = data, .size = bytes, .owner = std::move(encoded)};
}

}  // namespace

SparseTable::SparseTable(std::unique_ptr<RowTable> rows,
                         const TrainingRules& rules,
                         std::unique_ptr<TableMetrics> metrics)
    : rows_(std::move(rows)),
      rules_(rules),
      metrics_(std::move(metrics)),
      state_(rows_->updates(), rules.origin),
      sums_(rows_->width(), rules.memory) {
  ShowMetrics();
}

absl::StatusOr<ReceivedRows> SparseTable::Parse(
    const wire::RowPush& push, absl::Span<const PayloadView> payloads) const {
  RETURN_IF_ERROR(CheckPayloads(payloads.size(), push.with_counts() ? 3 : 2));
  if (push.with_values()) {
    RETURN_IF_ERROR(CheckPullSize(uint64_t{push.rows()} * rows_->width()));
  }
  ASSIGN_OR_RETURN(const job::Encoding encoding, EncodingOf(push.encoding()));
  ASSIGN_OR_RETURN(ReceivedRows gradients,
                   ReceivedRows::Create(payloads[0], payloads[1], push.rows(),
                                        rows_->width(), encoding),
                   _ << "table \"" << name() << "\"");
  if (push.with_counts()) {
    RETURN_IF_ERROR(gradients.SetCounts(payloads[2]))
        << "table \"" << name() << "\"";
  }
  if (rules_.non_finite == NonFinite::kReject) {
    RETURN_IF_ERROR(CheckFinite(gradients));
  }
  return gradients;
}

absl::StatusOr<ReceivedRows> SparseTable::Parse(
    const wire::RowPull& pull, absl::Span<const PayloadView> payloads) const {
  RETURN_IF_ERROR(CheckPayloads(payloads.size(), 1));
  RETURN_IF_ERROR(CheckPullSize(uint64_t{pull.rows()} * rows_->width()));
  ASSIGN_OR_RETURN(ReceivedRows ids,
                   ReceivedRows::Create(payloads[0], pull.rows()),
                   _ << "table \"" << name() << "\"");
  return ids;
}

absl::Status SparseTable::CheckFinite(const ReceivedRows& gradients) const {
  const size_t elements = gradients.count() * rows_->width();
  const size_t first = FirstNonFinite(gradients.gradients(), elements);
  if (first == elements) return absl::OkStatus();
  const size_t row = first / rows_->width();
  uint64_t id;
  std::memcpy(&id, gradients.ids() + row * sizeof(id), sizeof(id));
  return NonFiniteError(absl::StrCat("table \"", name(), "\""),
                        absl::StrCat(first % rows_->width(), " of row ", id));
}

absl::StatusOr<UpdateBounds> SparseTable::Apply(const ReceivedRows& gradients) {
  RETURN_IF_ERROR(rows_->Push(gradients.ids(), gradients.gradients(),
                              gradients.count(),
                              /*out=*/nullptr, gradients.counts()))
      << "table \"" << name() << "\"";
  ShowMetrics();
  return updates();
}

absl::StatusOr<SparseTable::Pulled> SparseTable::ApplyAndPull(
    const ReceivedRows& gradients, job::Encoding encoding) {
  const size_t elements = gradients.count() * rows_->width();
  auto values = std::make_shared_for_overwrite<float[]>(elements);
  RETURN_IF_ERROR(rows_->Push(gradients.ids(), gradients.gradients(),
                              gradients.count(), values.get(),
                              gradients.counts()))
      << "table \"" << name() << "\"";
  ShowMetrics();
  return Pulled{.payload = Encoded(std::move(values), elements, encoding),
                .updates = updates()};
}

absl::Status SparseTable::CheckNotAhead(int64_t step) const {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(state_.CheckNotAhead(step)) << "table \"" << name() << "\"";
  return absl::OkStatus();
}

StepEntries SparseTable::Contribute(const StepPush& push,
                                    const ReceivedRows& gradients,
                                    std::shared_ptr<Latch> latch,
                                    Released& released) {
  StepEntries entries;
  absl::MutexLock lock(&mu_);
  if (state_.IsNew(push, rules_.replicas_to_aggregate) &&
      !sums_.HasRoom(push.replica, gradients.count())) {
    entries.Include(StepState::Entry::kNoRoom);
    released.Add(std::move(latch));
    return entries;
  }
  const StepState::Entry entry =
      state_.Enter(push, rules_.replicas_to_aggregate);
  entries.Include(entry);
  state_.NotifyWhenComplete(push, std::move(latch), released);
  if (entry != StepState::Entry::kNew) return entries;
  previous_.reset();
  sums_.Add(push.replica, gradients.ids(), gradients.gradients(),
            gradients.count(), gradients.counts());
  CompleteIfDue(released);
  return entries;
}

void SparseTable::CompleteIfDue(Released& released) {
  if (!state_.IsDue(rules_.replicas_to_aggregate)) return;
  const absl::Status applied = ApplyMeans();
  if (applied.ok()) {
    ShowMetrics();
    state_.Complete(released);
  } else {
    state_.Abandon(applied, released);
  }
}

absl::Status SparseTable::ApplyMeans() {
  const RowGradients means = sums_.TakeMeans();
  const auto* const ids = reinterpret_cast<const std::byte*>(means.ids.data());
  std::vector<float> before(means.values.size());
  RETURN_IF_ERROR(rows_->Pull(ids, means.ids.size(), before.data()))
      << "table \"" << name() << "\"";
  rows_->AdvanceTo(state_.updates());
  RETURN_IF_ERROR(
      rows_->Push(ids, reinterpret_cast<const std::byte*>(means.values.data()),
                  means.ids.size(), /*out=*/nullptr,
                  reinterpret_cast<const std::byte*>(means.counts.data())))
      << "table \"" << name() << "\"";
  const size_t bytes =
      means.ids.size() * sizeof(uint64_t) + before.size() * sizeof(float);
  previous_.emplace(means.ids, std::move(before), rows_->width(),
                    HeldMemory(rules_.memory, bytes));
  return absl::OkStatus();
}

void SparseTable::NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                           Released& released) {
  absl::MutexLock lock(&mu_);
  state_.NotifyAt(updates, std::move(latch), released);
}

void SparseTable::Hold(int64_t updates, Released& released) {
  absl::MutexLock lock(&mu_);
  state_.Hold(updates);
  CompleteIfDue(released);
}

int64_t SparseTable::HoldNow() {
  absl::MutexLock lock(&mu_);
  state_.Hold(state_.updates());
  return state_.updates();
}

bool SparseTable::GoOnAt(int64_t updates, Released& released) {
  absl::MutexLock lock(&mu_);
  if (!state_.GoOnAt(updates, released)) return false;
  previous_.reset();
  sums_.Clear();
  return true;
}

void SparseTable::SnapshotAt(int64_t updates, const SnapshotTurn& turn,
                             std::shared_ptr<std::optional<RowSnapshot>> out,
                             std::shared_ptr<Latch> latch, Released& released) {
  absl::MutexLock lock(&mu_);
  const auto capture = [this, turn, out]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    rows_->AdvanceTo(state_.updates());
    out->emplace(rows_->TakeSnapshot(turn));
  };
  state_.SnapshotAt(updates, capture, std::move(latch), released, out.get());
}

void SparseTable::CancelSnapshot(const std::optional<RowSnapshot>* out) {
  absl::MutexLock lock(&mu_);
  state_.CancelSnapshot(out);
}

void SparseTable::Abandon(const absl::Status& status, Released& released) {
  absl::MutexLock lock(&mu_);
  state_.Abandon(status, released);
}

absl::StatusOr<SparseTable::Pulled> SparseTable::Pull(
    const ReceivedRows& ids, job::Encoding encoding,
    int64_t min_updates) const {
  const size_t elements = ids.count() * rows_->width();
  Pulled pulled;
  auto values = std::make_shared_for_overwrite<float[]>(elements);
  RETURN_IF_ERROR(ReadRows(ids, min_updates, values.get(), pulled.updates))
      << "table \"" << name() << "\"";
  pulled.payload = Encoded(std::move(values), elements, encoding);
  return pulled;
}

absl::Status SparseTable::ReadRows(const ReceivedRows& ids, int64_t min_updates,
                                   float* values, UpdateBounds& updates) const {
  if (rules_.replicas_to_aggregate == 0) {
    updates.Include(rows_->updates());
    RETURN_IF_ERROR(rows_->Pull(ids.ids(), ids.count(), values));
    ShowMetrics();
    updates.Include(rows_->updates());
    return absl::OkStatus();
  }
  // All rows are of one step: no update is made meanwhile.
  absl::ReaderMutexLock lock(&mu_);
  const bool is_previous = previous_ && state_.updates() > min_updates;
  const int64_t at = state_.updates() - is_previous;
  RETURN_IF_ERROR(rows_->Pull(ids.ids(), ids.count(), values, at));
  ShowMetrics();
  if (is_previous) previous_->CopyTo(ids.ids(), ids.count(), values);
  updates.Include(at);
  return absl::OkStatus();
}

RowSnapshot SparseTable::TakeSnapshot(const SnapshotTurn& turn) {
  if (rules_.replicas_to_aggregate > 0) {
    absl::MutexLock lock(&mu_);
    rows_->AdvanceTo(state_.updates());
  }
  return rows_->TakeSnapshot(turn);
}

UpdateBounds SparseTable::updates() const {
  UpdateBounds updates;
  if (rules_.replicas_to_aggregate == 0) {
    updates.Include(rows_->updates());
  } else {
    absl::MutexLock lock(&mu_);
    updates.Include(state_.updates());
  }
  return updates;
}

}  // namespace parasol
