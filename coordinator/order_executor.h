#ifndef PARASOL_COORDINATOR_ORDER_EXECUTOR_H_
#define PARASOL_COORDINATOR_ORDER_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/client/ps_client.h"
#include "coordinator/continued_chains.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/order.h"
#include "coordinator/shards/standby_board.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// The executor of the coordinator's orders: calls the ps, all at once, and
// writes the checkpoint directory. Its functions block for as long as that
// takes. One order at a time; CancelCalls() may be called from any thread.
class OrderExecutor {
 public:
  // Calls of the executor to the owner of the checkpoint directory.
  struct Directory {
    // Checks that the chief still owns the store's directory.
    std::function<absl::Status()> check_owner = [] { return absl::OkStatus(); };
    // Returns FailedPrecondition, with the owner, if the directory is known to
    // have another one now. Takes a second at most, also if the disk does not
    // answer.
    std::function<absl::Status()> look_at_owner = [] {
      return absl::OkStatus();
    };
    // Keeps the newest place epochs, and who acts, where a later chief finds
    // them.
    // Called before variables are loaded; if it fails, nothing is loaded.
    std::function<absl::Status(const LoadOrder& order)> record_places =
        [](const LoadOrder&) { return absl::OkStatus(); };
    // Keeps there what is kept of the shards' standbys.
    std::function<absl::Status(const StandbyBoard::Kept& kept)>
        record_standbys =
            [](const StandbyBoard::Kept&) { return absl::OkStatus(); };
  };

  // `options` are the coordinator's; `clients` are the clients of its shards,
  // in the same order.
  OrderExecutor(const CoordinatorOptions& options,
                std::vector<std::unique_ptr<PsClient>> clients,
                CheckpointStore store, Directory directory);
  OrderExecutor(const CoordinatorOptions& options,
                std::vector<std::unique_ptr<PsClient>> clients,
                CheckpointStore store)
      : OrderExecutor(options, std::move(clients), std::move(store),
                      Directory()) {}

  // Returns the result of each target, in their order. If a ps finds a
  // checkpoint damaged or gone, the one before it is tried.
  //   DataLoss     no checkpoint of this run is left to try.
  //   Unavailable  the disk, or a ps, can't be read now: nothing older was
  //                tried, because an intact checkpoint may be there.
  std::vector<absl::Status> Load(const LoadOrder& order);
  // Returns a line about acknowledged pushes that the shard lacks since the
  // last Load(); empty as a rule.
  std::string LostBy(size_t shard) const {
    const auto lost = lost_.find(shard);
    return lost == lost_.end() ? "" : lost->second;
  }

  // Writes the checkpoint and returns its step. With the job's full_every, of
  // what has changed since the run's newest checkpoint, whose files are in the
  // new one, too; a shard that does not know writes all. After an error
  // nothing is left of it. `kept` is asked before old checkpoints are removed.
  // Fails as the shards and StoreCheckpoint() do, and with
  //   Aborted      a shard went past the cut: it was not told of it in time.
  //   Unavailable  a shard lacks a step that no worker is there to complete.
  absl::StatusOr<int64_t> WriteCheckpoint(
      const CheckpointOrder& order, absl::Time now,
      absl::FunctionRef<KeptCheckpoints()> kept = NoneKept);

  // Returns true while a checkpoint is being written of which some shard was
  // behind the cut when it was asked: it awaits the workers, or has done so.
  bool AwaitsWorkers() const { return awaits_workers_; }

  // Records what is kept of the shards' standbys, durably. May be called while
  // an order is carried out.
  absl::Status RecordStandbys(const StandbyBoard::Kept& kept) const {
    return directory_.record_standbys(kept);
  }

  // Ends the calls in progress to one shard's ps, or to all ps.
  void CancelCalls(size_t shard) { clients_[shard]->CancelCalls(); }
  void CancelAllCalls();

  const CheckpointStore& store() const { return store_; }
  // Returns Directory::look_at_owner().
  absl::Status LookAtOwner() const { return directory_.look_at_owner(); }

 private:
  // Returns the steps of this run's checkpoints, ascending.
  //   Unavailable  a manifest can't be read, but need not be damaged.
  absl::StatusOr<std::vector<int64_t>> RunCheckpoints() const;
  // Orders each target to load `checkpoint`, as `order` says; empty: initial
  // values.
  std::vector<absl::Status> LoadFrom(
      const std::string& checkpoint,
      const std::vector<LoadOrder::Target>& targets, const LoadOrder& order);
  // Returns `loaded`, the result of a shard's task that was to load the
  // checkpoint of `step`; Unavailable instead of NotFound if the checkpoint is
  // there.
  absl::Status CheckLost(int64_t step, size_t shard,
                         const absl::Status& loaded) const;
  // Asks the shards how many updates they have had, and sets the manifest's
  // global_step to the cut.
  absl::Status ChooseCut(const CheckpointOrder& order,
                         durable::CheckpointManifest& manifest);
  bool IsFoundDamaged(int64_t step) const {
    return found_damaged_.contains(step);
  }
  // Returns the manifest of the run's newest checkpoint that nobody has found
  // damaged. Reads those that are newer, alone.
  //   NotFound, Unavailable, …  there is none, or one can't be read.
  absl::StatusOr<durable::CheckpointManifest> NewestUndamaged() const;
  // Returns the files of the run's newest checkpoint that nobody has found
  // damaged, if the next one may continue them: they are there, with their
  // sizes, and none of them is a file of a damaged one.
  ContinuedChains ChainsToContinue() const;
  // The files that a checkpoint continues, and the shards whose files have
  // names in its directory.
  struct OlderFiles {
    ContinuedChains chains = {};
    std::vector<bool> is_linked = {};
  };
  // Gives the files of ChainsToContinue() names in `directory`. Logs which
  // can't have one, and notes if none can.
  OlderFiles LinkOlderFiles(const std::string& directory);
  absl::Status SnapshotShards(const CheckpointOrder& order,
                              durable::CheckpointManifest& manifest,
                              const std::string& directory,
                              const OlderFiles& older);
  // A shard's new file, and whether it is an increment to the older ones.
  struct NewFile {
    durable::CheckpointFile file = {};
    bool is_increment = false;
  };
  // Snapshots one shard. Its new file is an increment only if the older ones
  // are linked, and they are no more if it is none.
  absl::StatusOr<NewFile> SnapshotShard(const CheckpointOrder& order,
                                        size_t shard, int64_t cut,
                                        const std::string& directory,
                                        const OlderFiles& older);
  // Returns the names of the shards' ps for which `is_meant(shard)`.
  std::string NamesOf(absl::FunctionRef<bool(size_t shard)> is_meant) const;
  // Returns the header of an order for the ps process `incarnation`.
  wire::OrderHeader HeaderFor(uint64_t incarnation) const;

  const std::string run_id_;
  const uint64_t layout_;
  const int64_t chief_epoch_;
  const Retention retention_;
  const int full_every_;
  const std::vector<std::unique_ptr<PsClient>> clients_;
  // The load request of each shard, without the checkpoint.
  std::vector<wire::LoadRequest> load_requests_;
  // The names of the shards' ps: "ps/1".
  std::vector<std::string> names_;
  // Kind of each shard: true if it is worker/0's; false if its pushes are
  // asynchronous while the job's steps are not.
  std::vector<bool> is_state_;
  std::vector<bool> in_step_;
  CheckpointStore store_;
  std::atomic<bool> awaits_workers_ = false;
  // True once the file system has refused to give any file another name.
  bool refuses_links_ = false;
  const Directory directory_;
  // Number of the Loads and of the checkpoints.
  int64_t orders_ = 0;
  // Steps of damaged checkpoints, which no ps is to load.
  std::set<int64_t> damaged_;
  std::map<size_t, std::string> lost_;  // key: the shard
  // Steps of checkpoints that a ps has found damaged, but that another one may
  // be able to load: no file of theirs goes into another checkpoint.
  std::set<int64_t> found_damaged_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_ORDER_EXECUTOR_H_
