#include "cluster/checkpoint/run_history.h"

#include <limits>

namespace parasol {
namespace {

std::map<int64_t, int64_t> EarlierOf(
    const durable::CheckpointManifest& checkpoint) {
  std::map<int64_t, int64_t> earlier;
  for (const durable::OwnedSteps& owner : checkpoint.earlier_owner()) {
    earlier[owner.chief_epoch()] = owner.last_step();
  }
  return earlier;
}

}  // namespace

RunHistory::RunHistory(
    const std::optional<durable::CheckpointManifest>& resumed,
    int64_t chief_epoch)
    : chief_epoch_(chief_epoch),
      last_step_(std::numeric_limits<int64_t>::max()) {
  if (!resumed) return;
  earlier_ = EarlierOf(*resumed);
  // An owner that is not known has epoch 0.
  earlier_[resumed->chief_epoch()] = resumed->global_step();
}

RunHistory::RunHistory(const durable::CheckpointManifest& checkpoint)
    : chief_epoch_(checkpoint.chief_epoch()),
      last_step_(checkpoint.global_step()),
      earlier_(EarlierOf(checkpoint)) {}

bool RunHistory::Has(const Evaluation& evaluation) const {
  if (evaluation.chief_epoch == chief_epoch_) {
    return evaluation.global_step <= last_step_;
  }
  const auto owner = earlier_.find(evaluation.chief_epoch);
  return owner != earlier_.end() && evaluation.global_step <= owner->second;
}

void RunHistory::AddTo(durable::CheckpointManifest& manifest) const {
  manifest.set_chief_epoch(chief_epoch_);
  manifest.clear_earlier_owner();
  for (const auto& [epoch, last_step] : earlier_) {
    durable::OwnedSteps& owner = *manifest.add_earlier_owner();
    owner.set_chief_epoch(epoch);
    owner.set_last_step(last_step);
  }
}

}  // namespace parasol
