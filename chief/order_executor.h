#ifndef PARASOL_CHIEF_ORDER_EXECUTOR_H_
#define PARASOL_CHIEF_ORDER_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
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
  // `clients` are the clients of `shards`, in the same order.
  OrderExecutor(const job::Job& job, const std::string& run_id,
                const std::vector<ShardBoard::Shard>& shards,
                std::vector<std::unique_ptr<PsClient>> clients,
                CheckpointStore store);

  // Returns the result of each target, in their order. If a ps can't read a
  // checkpoint, the one before it is tried.
  //   DataLoss  no checkpoint of this run is left to try.
  std::vector<absl::Status> Load(const Coordinator::LoadOrder& order);

  // Writes the checkpoint and returns its step. After an error nothing is left
  // of it. Errors are those of the shards and of the store, and
  //   Aborted      a shard went past the cut: it was not told of it in time.
  //   Unavailable  a shard lacks a step that no worker is there to complete.
  absl::StatusOr<int64_t> WriteCheckpoint(
      const Coordinator::CheckpointOrder& order, absl::Time now);

  // Returns true while a checkpoint is being written of which some shard was
  // behind the cut when it was asked: it awaits the workers, or has done so.
  bool AwaitsWorkers() const { return awaits_workers_; }

  // Ends the calls in progress to one shard's ps, or to all ps.
  void CancelCalls(size_t shard) { clients_[shard]->CancelCalls(); }
  void CancelAllCalls();

  const CheckpointStore& store() const { return store_; }

 private:
  // Returns the directories of this run's checkpoints, newest first.
  absl::StatusOr<std::vector<std::string>> RunCheckpoints() const;
  // Asks the shards how many updates they have had, and sets the manifest's
  // global_step to the cut.
  absl::Status ChooseCut(bool may_await, durable::CheckpointManifest& manifest);
  absl::Status SnapshotShards(durable::CheckpointManifest& manifest,
                              const std::string& directory, bool at_one_step);
  // Snapshots one shard and fills in its file of the manifest.
  absl::Status SnapshotShard(size_t shard, const std::string& directory,
                             bool at_one_step,
                             durable::CheckpointManifest& manifest);
  // Returns the names of the shards' ps for which `is_meant(shard)`.
  std::string NamesOf(absl::FunctionRef<bool(size_t shard)> is_meant) const;

  const std::string run_id_;
  const int max_to_keep_;
  const std::vector<std::unique_ptr<PsClient>> clients_;
  // The load request of each shard, without the checkpoint.
  std::vector<wire::LoadRequest> load_requests_;
  // The names of the shards' ps: "ps/1".
  std::vector<std::string> names_;
  CheckpointStore store_;
  std::atomic<bool> awaits_workers_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_ORDER_EXECUTOR_H_
