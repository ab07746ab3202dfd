#ifndef PARASOL_TESTS_SIMULATION_SYNC_WORKER_H_
#define PARASOL_TESTS_SIMULATION_SYNC_WORKER_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/replica_claims.h"
#include "tests/simulation/sync_shard.h"
#include "tests/simulation/worker_process.h"

namespace parasol::simulation {

// A worker in synchronous training: the model of SyncTrainingLoop. Each step
// pulls values of one step from all chunks, computes the worker's replicas, one
// after the other, and waits until every chunk has completed the step.
class SyncWorker : public WorkerProcess {
 public:
  SyncWorker(World& world, int index, int number);

 protected:
  void BeginLoop() override { claims_.Begin(); }
  void StopLoop() override { claims_.Stop(); }
  void OnMoved() override;
  bool Drain() override;
  int64_t completed_steps() const override {
    return claims_.share().completed_steps;
  }

 private:
  enum class Stage { kIdle, kPulling, kInStep };

  void OnNews();
  void BeginStep();
  void PullValues(int64_t min_step);
  void HaveValues();
  // Computes the next replica of the share that it has not computed.
  void ComputeNext();
  void Push(int replica);
  void PushTo(int shard, int replica);
  void OnPushed();

  ReplicaClaims claims_;
  Stage stage_ = Stage::kIdle;
  // The step that the worker makes, or whose values it pulls.
  int64_t step_ = 0;
  Updates pulled_;
  // The step's replicas that it has begun to compute, and has pushed.
  std::set<int> computed_, pushed_;
  bool is_computing_ = false;
  bool is_ending_ = false;
  // The first look at pushes that are not answered when it is told to end.
  absl::Time stopped_at_ = absl::InfiniteFuture();
  int unanswered_ = 0;
  std::vector<uint64_t> next_sequence_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SYNC_WORKER_H_
