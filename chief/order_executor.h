#ifndef PARASOL_CHIEF_ORDER_EXECUTOR_H_
#define PARASOL_CHIEF_ORDER_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

  // Writes the checkpoint. After an error nothing is left of it.
  absl::Status WriteCheckpoint(const Coordinator::CheckpointOrder& order,
                               absl::Time now);

  // Ends the calls in progress to one shard's ps, or to all ps.
  void CancelCalls(size_t shard) { clients_[shard]->CancelCalls(); }
  void CancelAllCalls();

  const CheckpointStore& store() const { return store_; }

 private:
  // Returns the directories of this run's checkpoints, newest first.
  absl::StatusOr<std::vector<std::string>> RunCheckpoints() const;
  absl::Status SnapshotShards(const Coordinator::CheckpointOrder& order,
                              durable::CheckpointManifest& manifest,
                              const std::string& directory);
  // Returns the header of an order for the ps process `incarnation`.
  wire::OrderHeader HeaderFor(uint64_t incarnation) const;

  const std::string run_id_;
  const uint64_t layout_;
  const int64_t chief_epoch_;
  const int max_to_keep_;
  const std::vector<std::unique_ptr<PsClient>> clients_;
  // The load request of each shard, without the checkpoint.
  std::vector<wire::LoadRequest> load_requests_;
  CheckpointStore store_;
  const RecordPlaces record_places_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_ORDER_EXECUTOR_H_
