#ifndef PARASOL_TESTS_SIMULATION_AUDITOR_H_
#define PARASOL_TESTS_SIMULATION_AUDITOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/checkpoint/evaluation_log.h"
#include "proto/checkpoint.pb.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shard_values.h"

namespace parasol::simulation {

// Something that must not happen.
struct Violation {
  // The invariant: "credited more than done".
  std::string kind;
  std::string what;
};

// Knows what each process has really done, and compares it with what they
// believe and write. Keeps the first violation.
class Auditor {
 public:
  explicit Auditor(const Schedule& schedule);

  const std::optional<Violation>& violation() const { return violation_; }
  void Violate(const std::string& kind, const std::string& what);

  // A worker that takes part in training; steps are counted per incarnation.
  void WorkerEnters(uint64_t worker);
  // The chief has answered its claims: it knows what its clock is.
  void WorkerIsAnswered(uint64_t worker) {
    workers_[worker].is_answered = true;
  }
  // The worker ends, or is killed: nobody waits for it any more.
  void WorkerLeaves(uint64_t worker);
  StepId StepStarts(uint64_t worker, int64_t batch);
  void StepCompletes(StepId step);
  int64_t started_steps() const { return static_cast<int64_t>(steps_.size()); }
  // Synchronous training: a chunk has had so many updates.
  void StepReached(int64_t updates);
  int64_t completed_steps() const { return completed_; }

  // The process `ps` has `values` of a shard now, from the checkpoint of `step`
  // (-1: initial values). `held` is what it had before, if anything.
  void Loaded(int ps, const ShardValues& values, const ShardValues* held);
  // The process `ps` has applied, or refused as a duplicate, a step's push.
  void Applied(int ps, const ShardValues& values, StepId step,
               bool is_duplicate);

  // A push is acknowledged to its worker, where shards have standbys.
  // `is_alone`: no other process has it.
  void Acknowledged(int ps, int shard, StepId step, bool is_alone);
  // Notes that what a shard has acknowledged may be lost: no process and no
  // checkpoint has it.
  void Excuse(int shard);
  // Returns the process that was loaded last with the shard.
  int holder(int shard) const { return shards_[shard].holder; }

  // The process `ps` ends because a checkpoint, `newest`, has its updates.
  void PsLeaves(int ps, const ShardValues& values, const Checkpoint* newest);

  // All processes were told to end, and have ended; `newest` is the newest
  // checkpoint, if there is one: it has everything that was acknowledged.
  void Stopped(const Checkpoint* newest);

  void ChiefStarts(int chief);
  // The chief counts so many steps as done.
  void Credited(int64_t global_step);
  void Committed(int chief, const Checkpoint& checkpoint);
  // Sets what else looks at each checkpoint that is committed.
  void OnCommitted(std::function<void(const Checkpoint&)> look) {
    on_committed_ = std::move(look);
  }
  // A checkpoint could not be written.
  void CheckpointFails(const absl::Status& status);
  // Sets what else looks at each failure.
  void OnCheckpointFails(std::function<void()> look) {
    on_checkpoint_fails_ = std::move(look);
  }
  // The process `ps` has been given the rate of `values`.
  void RateTaken(int ps, const ShardValues& values);
  // A checkpoint that is there was evaluated.
  void Evaluated(const Evaluation& evaluation);
  // Sets what else looks at each evaluation.
  void OnEvaluated(std::function<void(const Evaluation&)> look) {
    on_evaluated_ = std::move(look);
  }
  // A chief of the run has removed old checkpoints.
  void Pruned(const Disk& disk, const std::string& run_id);
  // The job is complete; `final` is the last checkpoint, and `evaluations`
  // belong to its run.
  void Ended(const Checkpoint& final,
             const std::vector<Evaluation>& evaluations);

 private:
  struct Step {
    uint64_t worker = 0;
    int64_t batch = 0;
    bool completed = false;
  };
  struct Worker {
    std::vector<StepId> steps;
    int64_t completed = 0;
    bool has_left = false;
    bool is_answered = false;
  };
  struct Shard {
    // The process that was loaded last.
    int holder = -1;
    // Steps whose pushes were acknowledged, and the ones that went with a
    // process that was lost.
    StepSet acknowledged;
    StepSet lost;
    // Steps among the acknowledged ones that may be lost.
    StepSet excused;
    // The learning rate that it was given last, and of what.
    std::string run_id;
    int hyperparameters = 0;
    double learning_rate = 1;
  };
  struct Best {
    int64_t step = 0;
    double loss = 0;
  };

  void CheckAcknowledged(const ShardValues& values);
  void CheckStaleness(const Worker& worker);
  void CheckBatches(int64_t end_step);
  void CheckRates(const Checkpoint& checkpoint);
  void CheckEarlyEnd(const Checkpoint& final,
                     const std::vector<Evaluation>& evaluations);
  // Synchronous training: all chunks were taken at the manifest's step.
  void CheckCut(const Checkpoint& checkpoint);

  const Schedule& schedule_;
  bool checks_staleness_;
  std::optional<Violation> violation_;
  std::vector<Step> steps_;
  int64_t completed_ = 0;
  std::map<uint64_t, Worker> workers_;
  std::vector<Shard> shards_;
  std::map<std::string, Best> best_;  // key: run
  int newest_chief_ = -1;
  std::function<void(const Checkpoint&)> on_committed_;
  std::function<void(const Evaluation&)> on_evaluated_;
  std::function<void()> on_checkpoint_fails_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_AUDITOR_H_
