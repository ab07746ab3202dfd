#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_KEEPER_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/group/group_worker.h"
#include "tests/simulation/session.h"
#include "tests/simulation/shard_holder.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// The part of worker 0 that is a ps to the chief: the model of StateKeeper and
// StateOrders. It has a place of its own in the simulated network, and lives
// and stands still with its worker.
class GroupKeeper : public ShardHolder {
 public:
  // The keeper ends no later than `worker`.
  GroupKeeper(World& world, int number, GroupWorker& worker);

  void Start() override { session_.Join(); }

  void Load(const LoadCall& call, const World::Done<Nothing>& done) override;
  void Snapshot(
      const SnapshotCall& call,
      const World::Done<std::shared_ptr<const ShardValues>>& done) override;
  void PrepareSnapshot(const SnapshotCall& call,
                       const World::Done<Updates>& done) override;

  // Asks for a checkpoint, and calls `done` when it is written, or after a
  // limit.
  void AwaitCheckpoint(std::function<void()> done);
  // Gives the place up, then calls `done`.
  void Leave(std::function<void()> done);

 private:
  template <typename Request>
  void Describe(Request& request) const;
  void OnState(const wire::HeartbeatResponse& state);
  void FinishLoad(const LoadCall& call, const World::Done<Nothing>& done);
  absl::Status Admit(uint64_t incarnation, int64_t chief_epoch,
                     const std::string& run_id);
  // Ends the wait for a checkpoint.
  void EndWait();

  GroupWorker& worker_;
  Session session_;
  int64_t chief_epoch_ = 0;
  bool is_loading_ = false;
  bool has_lost_session_ = false;
  std::function<void()> on_saved_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_KEEPER_H_
