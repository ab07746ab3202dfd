// The part of a shard that has to do with its journal, its standby, and the
// rules that the standby is told of.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/rows/row_form.h"
#include "ps/journal/push_journal.h"
#include "ps/journal/standby_feed.h"
#include "ps/shard/parameter_shard.h"

namespace parasol {

void ParameterShard::Acknowledge(absl::StatusOr<OperationResult> result,
                                 CountedDone done) {
  // A duplicate, too: what it repeats may not be kept yet.
  if (journal_ == nullptr || !result.ok() || journal_->keeps_at_once()) {
    return AcknowledgeWhenFed(std::move(result), std::move(done));
  }
  const auto kept =
      std::make_shared<std::pair<absl::StatusOr<OperationResult>, CountedDone>>(
          std::move(result), std::move(done));
  journal_->WhenKept([this, kept](const absl::Status& status) {
    auto& [result, done] = *kept;
    if (!status.ok()) return done(status);
    AcknowledgeWhenFed(std::move(result), std::move(done));
  });
}

void ParameterShard::AcknowledgeWhenFed(absl::StatusOr<OperationResult> result,
                                        CountedDone done) {
  if (feed_ == nullptr || !result.ok()) return done(std::move(result));
  const auto kept =
      std::make_shared<std::pair<absl::StatusOr<OperationResult>, CountedDone>>(
          std::move(result), std::move(done));
  feed_->WhenKept([kept](const absl::Status& status) {
    auto& [result, done] = *kept;
    done(status.ok() ? std::move(result) : status);
  });
}

absl::Status ParameterShard::TakeRules(
    PartOptimizers optimizers,
    const std::vector<std::unique_ptr<RowTable>>& rows,
    const wire::LoadRequest& order, NonFinite non_finite) {
  if (rows.size() != tables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        rows.size(), " sparse tables, but the shard has ", tables_.size()));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (HasSameRows(rows[i]->form(), tables_[i]->rows().form())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", rows[i]->name(), "\" would have other slots than it has"));
  }
  absl::Status taken;
  gate_.WithoutPushes([&] {
    taken = dense_->UseOptimizers(std::move(optimizers));
    for (size_t i = 0; i < rows.size() && taken.ok(); ++i) {
      taken = tables_[i]->rows().TakeRulesOf(*rows[i]);
    }
    if (!taken.ok()) return;
    dense_->UseNonFinite(non_finite);
    for (const auto& table : tables_) table->UseNonFinite(non_finite);
    if (feed_ != nullptr) feed_->AppendChange(SettingsOf(order));
  });
  return taken;
}

void ParameterShard::GoOnAt(int64_t updates) {
  if (!sync_.has_value() || !IsBehind(updates)) return;
  Released released;
  gate_.WithoutPushes([&] {
    bool has_jumped = dense_->GoOnAt(updates, released);
    for (const std::unique_ptr<SparseTable>& table : tables_) {
      has_jumped |= table->GoOnAt(updates, released);
    }
    // The standby finds it at this place among the pushes. It was restored in
    // any case, and would jump where this shard does not.
    if (!has_jumped || feed_ == nullptr) return;
    wire::LoadRequest change;
    change.set_global_step(updates);
    feed_->AppendChange(change);
  });
}

bool ParameterShard::IsBehind(int64_t updates) const {
  for (const std::unique_ptr<Chunk>& chunk : dense_->chunks()) {
    if (!chunk->is_frozen() && chunk->updates() < updates) return true;
  }
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    if (table->updates().min < updates) return true;
  }
  return false;
}

absl::StatusOr<ShardSnapshot> ParameterShard::TakeSnapshotForStandby(
    Clock& clock, const std::function<bool()>& is_cancelled) {
  if (!sync_.has_value()) {
    return Cut([this] { feed_->Begin(std::nullopt); }, /*stays=*/false,
               SnapshotTurn());
  }
  // Nothing has had as many updates: all gradients of that step, and of later
  // ones, are yet to come.
  int64_t cut = 0;
  gate_.WithoutPushes([&] {
    cut = progress() + 1;
    feed_->Begin(cut);
  });
  StepSnapshot at_step(*dense_, tables_, cut);
  return at_step.Wait(clock, is_cancelled);
}

}  // namespace parasol
