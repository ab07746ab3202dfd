#ifndef PARASOL_CHIEF_ORDER_EXECUTOR_H_
#define PARASOL_CHIEF_ORDER_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordinator.h"
#include "chief/coordinator_options.h"
#include "cluster/client/ps_client.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// The executor of the coordinator's orders: calls the ps, all at once, and
// writes the checkpoint directory. Its functions block for as long as that
// takes. One order at a time; CancelCalls() may be called from any thread.
class OrderExecutor {
 public:
  // Keeps the newest place epochs (LoadOrder) where a later chief finds them.
  using RecordPlaces =
      std::function<absl::Status(const std::map<int, int64_t>& ps_epochs)>;

  // `options` are the coordinator's; `clients` are the clients of its shards,
  // in the same order. `record_places` is called before variables are loaded,
  // unless it is null; if it fails, nothing is loaded.
  OrderExecutor(const CoordinatorOptions& options,
                std::vector<std::unique_ptr<PsClient>> clients,
                CheckpointStore store, RecordPlaces record_places = nullptr);

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
  absl::Status ChooseCut(const Coordinator::CheckpointOrder& order,
                         durable::CheckpointManifest& manifest);
  absl::Status SnapshotShards(const Coordinator::CheckpointOrder& order,
                              durable::CheckpointManifest& manifest,
                              const std::string& directory);
  // Snapshots one shard and fills in its file of the manifest.
  absl::Status SnapshotShard(const Coordinator::CheckpointOrder& order,
                             size_t shard, const std::string& directory,
                             durable::CheckpointManifest& manifest);
  // Returns the names of the shards' ps for which `is_meant(shard)`.
  std::string NamesOf(absl::FunctionRef<bool(size_t shard)> is_meant) const;
  // Returns the header of an order for the ps process `incarnation`.
  wire::OrderHeader HeaderFor(uint64_t incarnation) const;

  const std::string run_id_;
  const uint64_t layout_;
  const int64_t chief_epoch_;
  const int max_to_keep_;
  const std::vector<std::unique_ptr<PsClient>> clients_;
  // The load request of each shard, without the checkpoint.
  std::vector<wire::LoadRequest> load_requests_;
  std::vector<std::string> names_;  // of the shards' ps: "ps/1"
  CheckpointStore store_;
  std::atomic<bool> awaits_workers_ = false;
  const RecordPlaces record_places_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_ORDER_EXECUTOR_H_
