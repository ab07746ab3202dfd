#include "ps/shard/push_gate.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

PushGate::PushGate(const DedupWindows& applied) {
  absl::MutexLock lock(&dedup_mu_);
  dedup_.Restore(applied);
}

absl::StatusOr<OperationResult> PushGate::ApplyOnce(
    uint64_t worker_incarnation, uint64_t sequence, uint64_t acknowledged,
    absl::FunctionRef<absl::StatusOr<UpdateBounds>()> apply) {
  absl::ReaderMutexLock applying(&mu_);
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
                     dedup_.Mark(worker_incarnation, sequence, acknowledged));
    if (claim == Claim::kDuplicate) {
      return OperationResult{.duplicate = true,
                             .lost = dedup_.TakeLost(worker_incarnation)};
    }
    if (claim == Claim::kUnderWay) {
      return absl::UnavailableError(absl::StrCat(
          "push ", sequence, " came on another stream and is being applied"));
    }
  }
  const absl::StatusOr<UpdateBounds> updates = apply();
  absl::MutexLock lock(&dedup_mu_);
  if (!updates.ok()) {
    dedup_.Unmark(worker_incarnation, sequence);
    return updates.status();
  }
  applied_.fetch_add(1, std::memory_order_release);
  dedup_.Confirm(worker_incarnation, sequence);
  return OperationResult{.lost = dedup_.TakeLost(worker_incarnation),
                         .min_updates = updates->min,
                         .max_updates = updates->max};
}

void PushGate::Enter(absl::FunctionRef<void()> enter) {
  absl::ReaderMutexLock applying(&mu_);
  enter();
}

void PushGate::WithoutPushes(absl::FunctionRef<void()> alone, bool stays) {
  absl::WriterMutexLock no_push(&mu_);
  stays_ |= stays;
  alone();
}

DedupWindows PushGate::Windows() const {
  absl::MutexLock lock(&dedup_mu_);
  return dedup_.Windows();
}

bool PushGate::stays() const {
  absl::ReaderMutexLock lock(&mu_);
  return stays_;
}

void PushGate::GoOn() {
  absl::WriterMutexLock lock(&mu_);
  stays_ = false;
}

void PushGate::Seal() {
  absl::WriterMutexLock no_push(&mu_);
  is_sealed_ = true;
}

}  // namespace parasol
