#ifndef PARASOL_CLUSTER_CHECKPOINT_RUN_HISTORY_H_
#define PARASOL_CLUSTER_CHECKPOINT_RUN_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>

#include "cluster/checkpoint/evaluation_log.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The checkpoints that a run's values descend from, and those that its owner
// writes. A run that goes back behind a damaged checkpoint abandons it: another
// checkpoint of that step may follow, with other values, and evaluations of the
// abandoned one may come late. The owner of a directory, by its chief epoch,
// writes checkpoints of one line of descent, so (epoch, step) tells them apart.
// Pure.
class RunHistory {
 public:
  // The history of the owner `chief_epoch`, which goes on from the checkpoint
  // `resumed`, or begins a run.
  RunHistory(const std::optional<durable::CheckpointManifest>& resumed,
             int64_t chief_epoch);

  // The history of a checkpoint.
  explicit RunHistory(const durable::CheckpointManifest& checkpoint);

  // Returns true if the evaluation, one of this run, is of a checkpoint of this
  // history.
  bool Has(const Evaluation& evaluation) const;

  // Adds this history to the manifest of a checkpoint that the owner writes.
  void AddTo(durable::CheckpointManifest& manifest) const;

  int64_t chief_epoch() const { return chief_epoch_; }

 private:
  int64_t chief_epoch_;
  int64_t last_step_;  // last step of the owner's own checkpoints
  // The last step of each earlier owner's.
  std::map<int64_t, int64_t> earlier_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_RUN_HISTORY_H_
