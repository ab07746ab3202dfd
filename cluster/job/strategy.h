#ifndef PARASOL_CLUSTER_JOB_STRATEGY_H_
#define PARASOL_CLUSTER_JOB_STRATEGY_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "proto/job.pb.h"

// The one place that decides by which strategy a job is trained.
namespace parasol {

// Returns the strategy that the job names; nullopt if it names none.
std::optional<StrategyKind> StrategyOf(const job::Job& job);

// Gives the job the strategy of the flag --strategy, with its defaults, unless
// the job has that one already.
void ChooseStrategy(StrategyKind kind, job::Job& job);

// Returns true if the job is trained by workers without ps. Call it after
// ResolveClusterStrategy().
bool IsMultiWorkerMirrored(const job::Job& job);

// Returns true if workers have the variables and ps the sparse tables.
bool IsHybrid(const job::Job& job);

// Returns how workers sum gradients among themselves; null if they don't: the
// job is trained neither by workers without ps nor under hybrid.
const job::MultiWorkerMirrored* AllReduceOf(const job::Job& job);

// Returns the number of replicas of each worker of a cluster: one for each
// device that the job lists for it, or one.
int ReplicasOfWorker(const job::Job& job);

// Returns the devices of a worker of a cluster, in the order of its replicas,
// by their names for Device::Open(): the devices that the job lists, or the one
// that `device` means, the flag --device ("auto" if it was not given).
//   InvalidArgument  this machine lacks a device, or the flag and the list are
//                    both there and differ. Names the field and what to do.
absl::StatusOr<std::vector<std::string>> ResolveWorkerDevices(
    const job::Job& job, absl::string_view device);

// Returns OK if `names` are names of devices, all distinct. Asks no machine
// whether it has them. `path` is the list's.
//   InvalidArgument  names the element.
absl::Status CheckDeviceNames(
    const std::string& path,
    const google::protobuf::RepeatedPtrField<std::string>& names);

// Returns true if ps take the gradients of a step's replicas together.
bool HasTablesInStep(const job::Job& job);

// Returns OK if the strategy can train a model of that many variables that are
// no sparse tables.
//   InvalidArgument  hybrid, and there are none.
absl::Status CheckHasVariables(const job::Job& job, size_t variables);

// Returns OK if the strategy can do with `workers`, the addresses of a
// cluster's workers by index.
//   InvalidArgument  hybrid, and there is no worker 0.
absl::Status CheckHasWorkerZero(const job::Job& job,
                                const std::map<int, std::string>& workers);

// Returns OK if evaluations may reduce the rate while the job, with the
// defaults of its cluster, is trained.
//   InvalidArgument  workers update variables, and would not hear of it.
absl::Status CheckRateCanBeReduced(const job::Job& job);

// Returns true if the exchanges of a job's local steps are made in fragments,
// or beside steps.
bool StreamsFragments(const job::Job& job);

// Returns OK if workers without ps can make the job's exchanges.
//   InvalidArgument  these are made in fragments, or beside steps.
absl::Status CheckGroupCanExchange(const job::Job& job);

// Returns OK if ps, which have parts of variables, can update them.
//   InvalidArgument  the job's optimizer needs whole variables.
absl::Status CheckPsCanUpdate(const job::Job& job);

// Returns OK if workers can have the job's sparse tables themselves.
//   InvalidArgument  a table has a tier, or values in bfloat16, which only ps
//                    have.
absl::Status CheckTablesOfWorkers(const job::Job& job);

// Gives the job the strategy by which a cluster with `num_ps` ps trains it:
// `flag` (--strategy), if it was given, or else the job's own, or else the one
// that the cluster is made for.
//   InvalidArgument  the strategy trains in one process, or needs ps, or has
//                    none, or needs sparse tables; or the job clips gradients,
//                    which replicas in step can't do, or has LAMB, which ps
//                    can't, or a tier, which workers can't. Names the field and
//                    what to do.
absl::Status ResolveClusterStrategy(std::optional<StrategyKind> flag,
                                    int num_ps, job::Job& job);

// The replicas of a job that is trained in one process.
struct ProcessReplicas {
  StrategyKind strategy = StrategyKind::kDefault;
  // The name of each replica's device, for Device::Open(); at least one.
  std::vector<std::string> devices;
};

// Returns the replicas of `job`, its defaults filled in, in a process without a
// cluster; under multi-worker mirrored the process is the only worker, with the
// devices that the job lists for it. `device` is the flag --device, "auto" if
// it was not given.
//   InvalidArgument  the strategy needs a cluster, or names a device that does
//                    not exist or twice, or --device contradicts it, or the job
//                    clips gradients, which replicas in step can't do, or NCCL
//                    is to sum them, and is not here or has no CUDA device, or
//                    a user's all-reduce is, and there is a CUDA device.
//                    Names the field and what to do.
absl::StatusOr<ProcessReplicas> ResolveProcessReplicas(
    const job::Job& job, absl::string_view device);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_STRATEGY_H_
