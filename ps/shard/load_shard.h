#ifndef PARASOL_PS_SHARD_LOAD_SHARD_H_
#define PARASOL_PS_SHARD_LOAD_SHARD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "base/work_helpers.h"
#include "cluster/rows/row_table.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/dense/dense_parts.h"
#include "ps/dense/part_layout.h"
#include "ps/dense/part_optimizers.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/restore_journal.h"
#include "ps/step/non_finite.h"
#include "ps/step/training_rules.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

struct LoadLimits {
  // Limit on the bytes of all values and slots together, rows of sparse tables
  // included, and of the gradients of a synchronous step.
  uint64_t memory_bytes = UINT64_MAX;
  NonFinite non_finite = NonFinite::kReject;
  // RowTable::Options::helpers.
  std::shared_ptr<WorkHelpers> helpers = nullptr;
  // Directory of a journal, if the order has one.
  std::string journal_directory = {};
  // Directory of the files of tables with a tier; empty: $TMPDIR, or /var/tmp.
  std::string tier_directory = {};
  // RowTierOptions::on_failure.
  std::function<void(const absl::Status& failure)> on_tier_failure = {};
  // The registry of the tables' metrics; null: there are none.
  MetricsRegistry* metrics = nullptr;
};

// A load as the chief orders it, in steps: what can be wrong with it is found
// before the shard that it is to replace is let go. Not thread-safe.
class ShardLoad {
 public:
  // Checks the order. Allocates and reads nothing of the shard's size.
  //   InvalidArgument    the optimizer, an initializer, a part, a table or the
  //                      numbers of replicas are not acceptable.
  //   ResourceExhausted  values and slots are more than `limits.memory_bytes`.
  static absl::StatusOr<ShardLoad> Create(const wire::LoadRequest& request,
                                          const LoadLimits& limits);

  // Opens the checkpoint, if the order names one.
  //   InvalidArgument    it is of another run, model or optimizer.
  //   NotFound, DataLoss it is gone or damaged; the message names it.
  //   Unavailable        it can't be read now.
  absl::Status Open();

  // Returns the shard. With a checkpoint: its values, slots and update counts,
  // and its dedup windows if the same sharding wrote it. Without: initial
  // values. With a journal, what follows in that. Call it once, after Open().
  //   NotFound, DataLoss, Unavailable  as for Open().
  //   ResourceExhausted  the rows are more than `limits.memory_bytes`, or the
  //                      arrays don't fit in memory.
  absl::StatusOr<std::unique_ptr<ParameterShard>> Run();

  // Returns the manifest of a checkpoint that this order could load, without
  // its files.
  durable::CheckpointManifest Manifest() const;

  // Has `shard`, which has a standby's state (ShardState::in_journal()), keep
  // the order's journal, if it has one, instead of Run(). Call it once, after
  // Open(). Fails as Run() does.
  absl::Status GoOnWithJournal(ParameterShard& shard,
                               const JournalEnd& in_journal);

  // Returns what the journal has given; call it after Run() or
  // GoOnWithJournal().
  const RestoredJournal& restored_journal() const { return restored_; }

  // Makes `shard` go on with the order's optimizers, initializers and seed,
  // instead of Open() and Run(). Errors as for ParameterShard::TakeRules().
  absl::Status GiveRulesTo(ParameterShard& shard);

 private:
  ShardLoad(const wire::LoadRequest& request, const TrainingRules& rules,
            PartLayout layout, PartOptimizers optimizers,
            std::vector<std::unique_ptr<RowTable>> rows);
  absl::StatusOr<std::unique_ptr<DenseParts>> LoadDense();
  absl::Status RestoreFromJournal(ParameterShard& shard,
                                  const std::optional<JournalEnd>& of_standby);

  wire::LoadRequest request_;
  TrainingRules rules_;
  PartLayout layout_;
  PartOptimizers optimizers_;
  // The sparse tables, without rows.
  std::vector<std::unique_ptr<RowTable>> rows_;
  std::unique_ptr<CheckpointReader> checkpoint_;  // null: initial values
  std::string journal_directory_;
  MetricsRegistry* metrics_ = nullptr;
  RestoredJournal restored_;
};

// Carries out a whole load: Create(), Open() and Run(), with their errors.
absl::StatusOr<std::unique_ptr<ParameterShard>> LoadShard(
    const wire::LoadRequest& request, const LoadLimits& limits);

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_LOAD_SHARD_H_
