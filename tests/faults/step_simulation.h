#ifndef PARASOL_TESTS_FAULTS_STEP_SIMULATION_H_
#define PARASOL_TESTS_FAULTS_STEP_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/steps/replica_plan.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/step/step_state.h"
#include "tests/faults/simulated_shard.h"

namespace parasol {

// Simulates synchronous training, as one deterministic run of a random
// schedule. The chief's ReplicaPlan and the ps's ParameterShards are real. The
// workers do what SyncTrainingLoop does, one small action at a time, and the
// network between them carries one operation for each variable and table. No
// threads, no sockets, no time. With fragments a step has a pass for each; a
// gradient is then of its step and replica alone, as a replica that is taken
// over has no values of its own.
//
// The following may happen at any moment and in any order. A worker is killed
// between two of its operations, and comes back at once or later. A ps is
// replaced by one that is restored from the newest checkpoint. A checkpoint is
// taken. Claims, answers and heartbeats take any time.
class StepSimulation {
 public:
  // Ways to break the system on purpose, to test that the simulation notices.
  enum class Mutant {
    kNone,
    // Shards don't keep the values of the step before: a pull that asks for
    // them is answered with the present ones.
    kNoPreviousValues,
    // The chief cuts one step before the shards' largest number of updates.
    kEarlyCut,
    // Workers push nothing again to a ps that was replaced but what the one
    // before it has not answered.
    kNoSecondPush,
    // A replica that is taken over behind some passes pushes nothing of these.
    kNothingEarlier,
    // A worker that waits for a fragment's values looks at nothing else.
    kDeafPull,
  };
  struct Options {
    uint64_t seed = 0;
    int workers = 3;
    int shards = 2;
    int replicas = 3;
    // Number of gradients that make a step; fewer than `replicas` if some are
    // backups.
    int wanted = 3;
    // Number of passes of a step; with several, tables get no rows.
    int fragments = 1;
    int64_t steps = 12;
    // Number of times that each of these happens, while there are steps left.
    int kills = 4;
    int restores = 0;
    int checkpoints = 2;
    // Memory of each shard for gradients that wait for lower replicas'
    // gradients.
    uint64_t memory_bytes = UINT64_MAX;
    Mutant mutant = Mutant::kNone;
  };

  struct Report {
    // True if every shard has had all steps before the limit of events.
    bool complete = false;
    // The state of training, in words, if it is not complete.
    std::string stuck;
    // Values of all variables, then of all rows, as their bits.
    std::vector<uint32_t> values;
    // Numbers of the events that the simulation is meant to test.
    int kills = 0;
    int restores = 0;
    int duplicates = 0;
    // Gradients that had to be sent again for want of memory, and others.
    int refusals = 0;
    // Pulls that found values of two steps.
    int mixed_pulls = 0;
    // Passes that a replica had pushed nothing of when it was taken over.
    int earlier = 0;
    int checkpoints = 0;
    // Checkpoints whose cut some shard was past.
    int missed_cuts = 0;
  };

  explicit StepSimulation(const Options& options);
  ~StepSimulation();

  // Runs the simulation. May be called once.
  Report Run();

 private:
  // Number of variables of each shard.
  static constexpr int kVariables = 2;
  static constexpr int kPlaces = kVariables + 1;

  // One operation at one variable or table of a shard.
  struct Operation {
    int64_t id = 0;
    int shard = 0;
    int place = 0;  // kVariables: the table
    bool is_push = false;
    // The step of a push, or min_updates of a pull.
    int64_t step = 0;
    int replica = 0;
    std::vector<uint64_t> ids = {};
    std::vector<float> values = {};  // one for each id, or one
  };
  struct Answer {
    int64_t id = 0;
    OperationResult result = {};
    bool unavailable = false;
  };

  enum class State {
    kIdle,
    kPulling,
    kComputing,
    kPullingRows,
    kAwaiting,
    kPullingFragment,
  };
  struct Worker {
    uint64_t incarnation = 0;  // 0: not running
    // The last answer of the chief.
    int64_t version = 0;
    std::vector<int> replicas = {};
    int64_t completed = 0;

    State state = State::kIdle;
    int64_t step = 0;
    int pass = 0;
    // Number of updates that the values of all fragments have had; -1: not
    // known, or they differ.
    int64_t values_step = -1;
    int64_t share_version = 0;
    std::vector<int> share = {};
    std::set<int> computed = {};
    int replica = 0;
    // Values of all variables, and of the rows that were pulled last.
    std::vector<float> values = {};
    std::map<uint64_t, float> rows = {};
    // The pushes of the step, and whether a ps was replaced since.
    std::vector<Operation> pushes = {};
    std::set<std::pair<int, int>> pushed = {};  // (replica, pass)
    bool is_to_push_again = false;
    // Bounds of the updates that pulls in flight have been answered with.
    UpdateBounds pulled = {};

    // Operations that are not answered, by id; the ids of each shard's
    // operations that have not arrived; answers that have not arrived.
    std::map<int64_t, Operation> unanswered = {};
    std::vector<std::deque<int64_t>> to_shard = {};
    std::deque<Answer> answers = {};
  };

  void Step();
  void Start(int worker);
  void Kill(int worker);
  void Claim(Worker& worker);
  void Act(Worker& worker);
  void Deliver(Worker& worker, int shard);
  void Hear(Worker& worker);
  void StartPull(Worker& worker, int64_t min_step);
  void FinishPull(Worker& worker);
  void BeginStep(Worker& worker, int64_t step);
  void Compute(Worker& worker);
  void PushGradients(Worker& worker);
  void PushFragment(Worker& worker, int pass, bool is_zero);
  void PullFragment(Worker& worker);
  // Looks for another share, or a ps that was replaced: true if there is one.
  bool LookAround(Worker& worker);
  void PushAgain(Worker& worker);
  void FinishPass(Worker& worker);
  void FinishStep(Worker& worker);
  void Send(Worker& worker, Operation operation);
  void Execute(Worker& worker, const Operation& operation);

  // Returns the shard as the newest checkpoint has it.
  std::unique_ptr<ParameterShard> MakeShard(int shard,
                                            StepState::Origin origin) const;
  void Restore(int shard);
  void AdvanceCheckpoint();
  void EndCheckpoint(bool is_complete);

  bool IsComplete();
  bool HasStepsLeft() const { return plan_.global_step() < options_.steps; }
  int64_t UpdatesOf(int shard, int place);
  std::vector<uint32_t> Values();
  std::string Describe();
  std::vector<uint64_t> IdsOf(int64_t step, int replica) const;
  bool HasFragments() const { return options_.fragments > 1; }
  // Returns the pass in which a variable or the table of a shard is exchanged.
  int PassOf(int place) const { return place % options_.fragments; }

  // Returns a random number in [0, n).
  int Below(int n) { return static_cast<int>(random_() % n); }

  const Options options_;
  std::mt19937_64 random_;
  ReplicaPlan plan_;
  std::vector<Worker> workers_;
  uint64_t next_incarnation_ = 1;
  int64_t next_id_ = 1;
  std::vector<std::unique_ptr<ParameterShard>> shards_;
  // The newest checkpoint, and the one that is being taken.
  std::vector<SavedShard> saved_;
  bool holding_ = false;
  std::vector<int64_t> held_;  // each shard's updates; -1: not asked yet
  int64_t cut_ = -1;           // -1: not known yet
  std::vector<std::unique_ptr<StepSnapshot>> snapshots_;
  // The error of an operation that no repetition mends.
  absl::Status refusal_;
  int kills_left_;
  int restores_left_;
  int checkpoints_left_;
  Report report_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_STEP_SIMULATION_H_
