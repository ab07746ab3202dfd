#ifndef PARASOL_WORKER_GROUP_STATE_STATE_ORDERS_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_ORDERS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cluster/checkpoint/order_gate.h"
#include "cluster/checkpoint/saved_file.h"
#include "proto/parameter.pb.h"
#include "worker/group/state/group_state.h"

namespace parasol {

// The chief's orders to worker 0 of multi-worker mirrored training, which loads
// the variables that all workers take copies of, and writes them to
// checkpoints: the calls of proto/parameter.proto that a chief makes to a ps,
// with their errors. Thread-safe.
class StateOrders {
 public:
  // `task` is the worker's name, "worker/0", and `incarnation` the process at
  // ps/0 that it is to the chief.
  StateOrders(std::string task, uint64_t incarnation)
      : task_(task), gate_(std::move(task), incarnation) {}

  // Takes orders for `state`, of this run and layout, from now on. Until then
  // they are answered with Unavailable. `state` must outlive this object, or
  // the call with nullptr.
  void Serve(GroupState* state, std::string run_id, uint64_t layout)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes the chief with which the worker has registered, as OrderGate does.
  void Registered(int64_t chief_epoch,
                  const std::string& checkpoint_directory) {
    gate_.Registered(chief_epoch, checkpoint_directory);
  }
  // Returns true if there are updates that no complete checkpoint has. Looks
  // into the checkpoint directory.
  bool HoldsUpdates() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if there are variables, which are the run's.
  bool HoldsState() const ABSL_LOCKS_EXCLUDED(mu_);

  // A worker that has variables keeps them: the chief has found none newer. It
  // goes on with steps if a snapshot had it stay.
  absl::StatusOr<wire::LoadResponse> Load(const wire::LoadRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_, load_mu_);
  absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  // Polls `is_cancelled` while it waits for the cut.
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Returns the state, if the order may be looked at: OrderGate::Check().
  absl::StatusOr<GroupState*> StateFor(const wire::OrderHeader& order,
                                       const std::string& run_id) const
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string task_;
  OrderGate gate_;
  SavedFile saved_;
  absl::Mutex load_mu_;  // one load at a time

  mutable absl::Mutex mu_;
  GroupState* state_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::string run_id_ ABSL_GUARDED_BY(mu_);
  uint64_t layout_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_ORDERS_H_
