#ifndef PARASOL_COORDINATOR_COORDINATOR_OPTIONS_H_
#define PARASOL_COORDINATOR_COORDINATOR_OPTIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "coordinator/membership.h"
#include "coordinator/shards/acting_board.h"
#include "coordinator/shards/shard_board.h"
#include "coordinator/shards/standby_board.h"
#include "coordinator/steps/followed_data.h"
#include "coordinator/steps/followed_files.h"
#include "coordinator/steps/run_evaluations.h"
#include "coordinator/steps/step_grants.h"
#include "coordinator/steps/step_plan.h"
#include "coordinator/task_id.h"
#include "coordinator/watch/worker_paces.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// The job, the cluster and the run of a Coordinator.
struct CoordinatorOptions {
  job::Job job;
  std::string run_id;
  // The checkpoint that the run is resumed from; nullopt in a new run.
  std::optional<durable::CheckpointManifest> resumed;
  // Steps of newer checkpoints that are damaged.
  std::set<int64_t> damaged_checkpoints;
  // The path of that checkpoint.
  std::string resumed_from;
  // The evaluations of the run up to that checkpoint, in ascending order of
  // their steps.
  std::vector<Evaluation> evaluations;
  // The files that were taken of a training set that grows; nullopt: it does
  // not.
  std::optional<FollowedFiles> followed = std::nullopt;
  // True if that checkpoint is the last one of this job: nothing is left to
  // do.
  bool already_complete = false;
  std::vector<ShardBoard::Shard> shards;
  // The layout of the job over these shards (coordinator/layout.h). A ps that
  // holds the run in this layout keeps its values.
  uint64_t layout = 0;
  // Number of this chief, larger than every earlier chief's.
  int64_t chief_epoch = 1;
  // The newest process at each ps's place, by index, as an earlier chief has
  // recorded it: its place epoch.
  std::map<int, int64_t> ps_epochs;
  // Ps of these that act for lost ones.
  ActingBoard::Hosts acting_hosts;
  // The standby of each ps's shard, as an earlier chief has recorded it.
  StandbyBoard::Kept standbys;
  // The variables and tables in the manifests of checkpoints to be written.
  CheckpointContents contents;
  // The tasks of the cluster and their addresses, which may be empty.
  std::map<TaskId, std::string> tasks;
  // True if the workers have the variables (multi-worker mirrored, hybrid). The
  // process at the place of the last shard's ps is then a part of worker/0's
  // process, and writes the variables to checkpoints; it is named worker/0.
  bool is_mirrored = false;
  int state_place = 0;  // index of that ps
  // True if workers come and go as they like: nobody misses one that is absent,
  // as long as there is any.
  bool has_elastic_workers = false;
  // Bytes that the members of a group show each other.
  std::string group_secret;
  // True if the job ends when each worker of the cluster has left in good
  // order, whatever its end says.
  bool ends_with_workers = false;
  absl::Duration lease = absl::Seconds(10);
  // Time for which a missing ps, or the absence of all workers, is borne, or
  // a live worker that completes none of its steps.
  absl::Duration ps_timeout = absl::Minutes(5);
  absl::Duration worker_timeout = absl::Minutes(5);
  // Time for which the first and the last checkpoint are tried again.
  absl::Duration checkpoint_timeout = absl::Minutes(10);
  // The limits by which a worker is called slow.
  PaceLimits pace;
  // Time of training without a task after which it is named.
  absl::Duration absence_named = absl::Seconds(10);
  // Time that tasks have to leave when the job has ended.
  absl::Duration finish_timeout = absl::Seconds(30);
};

// Returns what gives the records of a training set another order than they had:
// "seed is 7, but was 1"; empty: nothing does.
std::string ChangedOrder(const job::Job& was, const job::Job& job);

// Returns lines about examples that the run trains once more or once less than
// others, since the job has changed in the middle of an epoch.
std::vector<std::string> WarningsOf(const CoordinatorOptions& options);

// Returns true if the task is the ps that is a part of worker/0.
bool IsState(const CoordinatorOptions& options, const TaskId& id);

// Returns the number of shards that ps have: under hybrid all but the last.
size_t NumPsShards(const CoordinatorOptions& options);

// Returns the indices of the ps whose shards have a standby, ascending.
std::vector<int> ReplicatedPs(const CoordinatorOptions& options);

// Returns the name of a task for people: "ps/1".
std::string NameOf(const CoordinatorOptions& options, const TaskId& id);

// Return the options of the membership, evaluations and grants, and the plan of
// the job's mode.
Membership::Options MembershipOf(const CoordinatorOptions& options);
RunEvaluations::Options EvaluationsOf(const CoordinatorOptions& options);
StepGrants::Options GrantsOf(const CoordinatorOptions& options);
std::unique_ptr<StepPlan> PlanOf(const CoordinatorOptions& options,
                                 absl::Time now);

// Returns the training set of a job that follows it.
std::optional<FollowedData> FollowedOf(const CoordinatorOptions& options);

// Returns the task's position among the tasks of its role, as indices may have
// gaps.
int RankOf(const wire::Task& task, const std::map<TaskId, std::string>& tasks);

// Returns what a worker's registration says of its steps.
WorkerArrival WorkerArrivalOf(const wire::RegisterRequest& request,
                              const std::map<TaskId, std::string>& tasks);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_COORDINATOR_OPTIONS_H_
