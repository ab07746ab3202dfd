#ifndef PARASOL_PARAMETERS_COMPOSITION_H_
#define PARASOL_PARAMETERS_COMPOSITION_H_

#include <string>

#include "cluster/cluster_spec/cluster_spec.h"
#include "proto/job.pb.h"

// The one place that says of what a job's parameters are composed: a strategy
// is a name for a row of this table, and nobody else asks for it.
namespace parasol {

// The place of the values of variables and of their slots.
enum class Store { kHost, kDevices, kPs };

// The sum of the gradients of variables that an optimizer sees: none is made
// here, as each is an update or ps add them; over the replicas of this process;
// over a group of workers.
enum class Sum { kNone, kReplicas, kGroup };

// The adder: all replicas or devices, a share each; the first one, everything;
// or NCCL, on the devices.
enum class Adder { kAll, kFirst, kNccl };

// The place of the rows of sparse tables: host memory of whoever has the
// variables; the memory of the only device, with what it has no room for on the
// host; or ps.
enum class TableStore { kHost, kDevice, kPs };

struct Composition {
  Store store = Store::kHost;
  Sum sum = Sum::kNone;
  Adder adder = Adder::kAll;
  TableStore rows = TableStore::kHost;
  // True if a step has a gradient of every replica and their mean is one
  // update; false: each gradient is one.
  bool in_step = false;
  // True if pushes of rows are part of such a step.
  bool rows_in_step = false;
  // Why the store is the host though devices of this process could have the
  // values, in words for the log.
  std::string why_host = {};

  bool has_ps() const { return store == Store::kPs || rows == TableStore::kPs; }
  bool has_group() const { return sum == Sum::kGroup; }
  // True if the gradients of variables stay on the devices, where they are
  // added.
  bool has_parts() const {
    return sum == Sum::kReplicas ? store == Store::kDevices
                                 : adder == Adder::kNccl;
  }

  friend bool operator==(const Composition&, const Composition&) = default;
};

// The process that trains.
struct TrainingProcess {
  bool is_in_cluster = false;
  // Number of its devices, and of those in whose memory updates can be made.
  int devices = 1;
  int updating_devices = 0;
  // False if the model has no variable that is trained.
  bool trains_variables = true;
};

// Returns the composition of a job whose defaults are filled in and whose
// strategy can do with the process.
Composition Compose(const job::Job& job, const TrainingProcess& process);

// Returns true if workers of a cluster form groups under the strategy: what a
// worker is started for, before it knows the job.
bool HasGroups(StrategyKind strategy);

// Returns true if a replica of the job computes the gradient of a step in
// several passes. Defaults are filled in, and the number of replicas is known.
bool HasMicroBatches(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_COMPOSITION_H_
