#ifndef PARASOL_TESTS_SIMULATION_SHARD_HOLDER_H_
#define PARASOL_TESTS_SIMULATION_SHARD_HOLDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proto/parameter.pb.h"
#include "tests/simulation/process.h"
#include "tests/simulation/shard_values.h"
#include "tests/simulation/sync_shard.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// An order to load a shard: wire::LoadRequest as far as the simulation needs
// it.
struct LoadCall {
  std::string run_id;
  uint64_t incarnation = 0;
  int64_t chief_epoch = 0;
  int64_t number = 0;
  uint64_t layout = 0;
  int hyperparameters = 0;
  // The rate that evaluations have reduced; nullopt: the job's own.
  std::optional<double> learning_rate = std::nullopt;
  int shard = 0;
  // The step of the checkpoint; -1: initial values.
  int64_t checkpoint = -1;
  // The standby that is kept for the shard; nullopt: the job does not
  // replicate.
  std::optional<wire::StandbyPlace> standby = std::nullopt;
  // Number of the cluster's steps that are known to be complete.
  int64_t global_step = 0;
};

struct SnapshotCall {
  std::string run_id;
  uint64_t incarnation = 0;
  int64_t chief_epoch = 0;
  // Number of updates at which the snapshot is taken (synchronous training).
  std::optional<int64_t> at_updates = std::nullopt;
  // Number of the chief's loads before it.
  int64_t number = 0;
  // wire::SnapshotRequest.stay.
  bool stay = false;
  // Returns true if the chief waits for the answer no more.
  std::function<bool()> is_cancelled = [] { return false; };
};

struct Nothing {};

// The process at a ps's place, as the chief knows it.
class ShardHolder : public Process {
 public:
  using Process::Process;

  virtual void Load(const LoadCall& call, const World::Done<Nothing>& done) = 0;
  virtual void Snapshot(
      const SnapshotCall& call,
      const World::Done<std::shared_ptr<const ShardValues>>& done) = 0;
  // Holds the shard until Snapshot() or a limit.
  virtual void PrepareSnapshot(const SnapshotCall& call,
                               const World::Done<Updates>& done) = 0;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SHARD_HOLDER_H_
