#ifndef PARASOL_COORDINATOR_ORDER_H_
#define PARASOL_COORDINATOR_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/shards/acting_board.h"
#include "coordinator/shards/shard_loads.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// An order to bring these shards' variables to these processes.
struct LoadOrder {
  using Target = ShardLoads::Target;
  std::vector<Target> targets;
  // True: load the newest checkpoint of the run that can be read. False: draw
  // the initial values. A process that holds the shard keeps its values.
  bool from_checkpoint = false;
  // The newest process at each ps's place, by index: its place epoch. To be
  // recorded before variables are loaded, so that no later chief trusts the
  // variables of an older process.
  std::map<int, int64_t> ps_epochs = {};
  // Ps of these that act for lost ones. To be recorded with them.
  ActingBoard::Hosts acting_hosts = {};
  // Number of the cluster's steps that are known to be complete.
  int64_t global_step = 0;
  // The learning rate in the place of the job's, if it was reduced.
  std::optional<double> learning_rate = std::nullopt;
};

// An order to snapshot all shards and commit `manifest`, which lacks only the
// files and the time.
struct CheckpointOrder {
  // Returns true if the checkpoint is to be evaluated, should it be of `step`.
  bool IsEvaluatedAt(int64_t step) const {
    return evaluated_from && step >= *evaluated_from;
  }

  durable::CheckpointManifest manifest;
  // True (synchronous training): all shards take their snapshots after the same
  // number of updates, which becomes the manifest's global_step: the largest
  // that any of them has had, and no less than global_step says. Shards whose
  // pushes are asynchronous all the same (hybrid) are taken as they are.
  // False: each shard's snapshot is taken as it is.
  bool at_one_step = false;
  // True if a shard that is behind the others will get there: a worker is
  // alive. Only with `at_one_step`.
  bool may_await = false;
  // The step from which the checkpoint is to be evaluated; nullopt: at no step.
  std::optional<int64_t> evaluated_from = std::nullopt;
  // The process that each shard is on.
  std::vector<uint64_t> incarnations = {};
  // True if the shards are to take no update behind the snapshot until they are
  // loaded again: the chief, or a ps, leaves with this checkpoint, and whoever
  // else leaves before its successor is there loses nothing either.
  bool stay = false;
};

using Order = std::variant<LoadOrder, CheckpointOrder>;

// The results of orders: of one shard's load, and of a checkpoint.
struct LoadResult {
  LoadOrder::Target target;
  absl::Status status;
  // Line about acknowledged pushes that the shard lacks; empty as a rule.
  std::string lost = {};
};
struct CheckpointResult {
  // The order, with the global_step that the checkpoint has.
  CheckpointOrder order;
  absl::Status status;
};
using OrderResult = std::variant<LoadResult, CheckpointResult>;

// The calls to cancel, of an order that is being carried out.
struct CallsInVain {
  // Shards whose processes, as the order names them, are gone or were replaced
  // (a process whose machine is gone never answers), or have yet to be loaded
  // for a checkpoint. A checkpoint at one step is then in vain on all shards:
  // the others may wait for a step that does not come before that shard is
  // loaded.
  std::vector<size_t> shards;
  // True if the chief was told to end and the workers have left: should the
  // checkpoint await a step of theirs, it is in vain.
  bool awaits_nobody = false;
  // True if the checkpoint was ordered while the job trained and may await a
  // step that does not come any more, as the last one is done. The final
  // checkpoint follows.
  bool is_obsolete = false;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_ORDER_H_
