#ifndef PARASOL_CHIEF_ORDER_EXECUTOR_H_
#define PARASOL_CHIEF_ORDER_EXECUTOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordinator.h"
#include "chief/shard_board.h"
#include "cluster/client/ps_client.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// The executor of the coordinator's orders: calls the ps, all at once, and
// writes the checkpoint directory. Its functions block for as long as that
// takes. One order at a time; CancelCalls() may be called from any thread.
class OrderExecutor {
 public:
  // `clients` are the clients of `shards`, in the same order. `check_owner`
  // checks that the chief still owns the store's directory.
  OrderExecutor(
      const job::Job& job, const std::string& run_id,
      const std::vector<ShardBoard::Shard>& shards,
      std::vector<std::unique_ptr<PsClient>> clients, CheckpointStore store,
      std::function<absl::Status()> check_owner = [] {
        return absl::OkStatus();
      });

  // Returns the result of each target, in their order. If a ps finds a
  // checkpoint damaged or gone, the one before it is tried.
  //   DataLoss     no checkpoint of this run is left to try.
  //   Unavailable  the disk, or a ps, can't be read now: nothing older was
  //                tried, because an intact checkpoint may be there.
  std::vector<absl::Status> Load(const Coordinator::LoadOrder& order);

  // Writes the checkpoint. After an error nothing is left of it. Errors are
  // those of StoreCheckpoint().
  absl::Status WriteCheckpoint(const Coordinator::CheckpointOrder& order,
                               absl::Time now);

  // Ends the calls in progress to one shard's ps, or to all ps.
  void CancelCalls(size_t shard) { clients_[shard]->CancelCalls(); }
  void CancelAllCalls();

  const CheckpointStore& store() const { return store_; }

 private:
  // Returns the steps of this run's checkpoints, ascending.
  //   Unavailable  a manifest can't be read, but need not be damaged.
  absl::StatusOr<std::vector<int64_t>> RunCheckpoints() const;
  // Orders each target to load `checkpoint`; empty: initial values.
  std::vector<absl::Status> LoadFrom(
      const std::string& checkpoint,
      const std::vector<Coordinator::LoadOrder::Target>& targets);
  // Returns `loaded`, the result of a ps that was to load the checkpoint of
  // `step`; Unavailable instead of NotFound if the checkpoint is there.
  absl::Status CheckLost(int64_t step, const absl::Status& loaded) const;
  absl::Status SnapshotShards(durable::CheckpointManifest& manifest,
                              const std::string& directory,
                              bool at_global_step);

  const std::string run_id_;
  const int max_to_keep_;
  const std::vector<std::unique_ptr<PsClient>> clients_;
  // The load request of each shard, without the checkpoint.
  std::vector<wire::LoadRequest> load_requests_;
  CheckpointStore store_;
  const std::function<absl::Status()> check_owner_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_ORDER_EXECUTOR_H_
