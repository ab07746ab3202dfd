#ifndef PARASOL_TESTS_SIMULATION_SCHEDULE_H_
#define PARASOL_TESTS_SIMULATION_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/task_id.h"

namespace parasol::simulation {

// The part of a job's file that may differ when its chief starts again.
struct JobChoice {
  // Number of the hyperparameters.
  int hyperparameters = 0;
  // Number of the partitioner, which decides the layout.
  int partitioner = 0;

  friend bool operator==(const JobChoice&, const JobChoice&) = default;
};

// The job and the cluster of a schedule.
struct Shape {
  // kGroup: workers have the variables (group/).
  enum class Mode { kAsynchronous, kBoundedStaleness, kSynchronous, kGroup };
  // How a group sums gradients: as their size chooses, by an algorithm for
  // larger ones, or by a planner. A star and a tree are what users write.
  enum class AllReduce { kAuto, kChain, kMachines, kRing, kStar, kTree };

  Mode mode = Mode::kAsynchronous;
  int workers = 2;
  int ps = 2;
  int64_t bound = 0;
  // Synchronous training: replicas that a step takes, and further ones.
  int replicas = 1;
  int backups = 0;
  // Groups: worker 0 runs the chief beside itself, as without ps; otherwise the
  // chief is a task of its own, as under hybrid.
  bool chief_beside = true;
  AllReduce all_reduce = AllReduce::kAuto;
  // Groups: replicas that a worker computes at the same time.
  int devices = 1;
  // True if each shard has a standby on the next ps.
  bool replicates = false;
  int64_t steps = 20;
  // Number of epochs that make up `steps`; 0: the job ends by steps.
  int epochs = 0;
  int64_t checkpoint_every = 5;
  int max_to_keep = 2;
  // Number of steps that a worker has in flight at most.
  int overlap = 1;
  absl::Duration compute = absl::Milliseconds(400);
  // Time within which the workers start, one after another: each begins to
  // train when it comes.
  absl::Duration late;
  // Share of the calls that the network loses, in thousandths.
  uint64_t loss = 0;
  // Time that the evaluation of a checkpoint takes, longer than a chief takes
  // to notice the one before; 0: there is no evaluator, and the job has none of
  // the decisions of evaluations.
  absl::Duration evaluation;
  // Evaluations without an improvement after which the job ends early.
  int patience = 1;
  // The field of EvaluationPolicy; -1: the job never waits for evaluations.
  int max_lag = -1;
  // Asynchronous training and bounded staleness: largest number of batches of a
  // file of a set that grows until it has `steps` batches; 0: it does not grow.
  int64_t growth = 0;

  std::string ToString() const;
};

// One thing that goes wrong.
struct Fault {
  enum class Kind {
    kKill,          // ends at once; a successor starts after `length`
    kLoseMachine,   // ends at once, with the machine that would close its
                    // connections
    kTerminate,     // is told to end: a ps leaves when it may, others end
    kStop,          // stands still for `length`
    kReplace,       // stands still for `length`, while a successor starts
    kCutFromChief,  // can't reach the chief, nor the chief it, for `length`
    kCutFromAll,    // can't reach anybody for `length`
    kRefuse,       // a ps that lives looks as if it were gone for `length`: its
                   // standby's stream has ended, its port is closed
    kSlowClock,    // runs its clock at `amount` % from now on
    kLoss,         // the network loses `amount` ‰ of the calls for `length`
    kReadErrors,   // the checkpoint directory can't be read for `length`
    kWriteErrors,  // the checkpoint directory can't be written for `length`
    kPart,         // the workers of the bits of `amount` can't reach the
                   // others, nor these them, for `length` (groups)
    kDamage,       // the newest checkpoint is damaged, if it is not the only
                   // intact one
    kFlip,         // each `amount`-th message between workers arrives with a
                   // flipped bit for `length` (groups)
    kStopAll,      // all are told to end within `amount` ms, in some order,
                   // and start again after `length`
  };

  // Time since the start.
  absl::Duration at;
  // Groups: not at a time, but when so many messages and operations of their
  // protocol have been; 0: at that time.
  int64_t at_point = 0;
  Kind kind = Kind::kKill;
  // The task that is hit; the chief's is {"chief", 0}. Unused in faults of the
  // network and the disk.
  TaskId target;
  absl::Duration length;
  int64_t amount = 0;
  // A killed ps has no successor, if its shard has a standby then.
  bool for_good = false;
  // The job with which a chief's successor starts.
  JobChoice job = {};

  std::string ToString() const;
};

// Everything that decides a simulation: equal schedules run equally.
struct Schedule {
  // Seed of delays, losses and identities.
  uint64_t seed = 0;
  Shape shape;
  std::vector<Fault> faults;  // ordered by time

  // Returns the end of the last fault.
  absl::Duration End() const;
  // Returns true if a fault of this kind hits a task of this role ("": any).
  bool Has(Fault::Kind kind, const std::string& role = "") const;
  bool Hits(const std::string& role) const;
  // Returns true if nothing goes wrong but that the cluster is stopped.
  bool IsCalm() const;
  // Returns true if a later chief may have another job: workers of the one
  // before don't tell what they have done, and its steps may be done again.
  bool ChangesJob() const;
  // Returns a readable list, one line for each fault.
  std::string ToString() const;
};

class Random;

// Returns a stop of the whole cluster, at once or of one after the other, that
// begins before `last`.
Fault DrawStop(absl::Duration last, Random& random);

// Returns the schedule of a seed. Every 2,000th has very many workers; half
// have a theme: faults that meet at few tasks within a short time.
Schedule DrawSchedule(uint64_t seed);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SCHEDULE_H_
