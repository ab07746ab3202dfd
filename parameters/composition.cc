#include "parameters/composition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/job/strategy.h"
#include "ml/optimizer/device/replica_mean.h"

namespace parasol {
namespace {

// Returns true if an optimizer has code for the host alone.
bool HasCustomOptimizer(const job::Job& job) {
  const auto& tables = job.model().sparse_table();
  const auto& layers = job.model().layer();
  return job.optimizer().has_custom() ||
         std::any_of(tables.begin(), tables.end(),
                     [](const job::SparseTable& table) {
                       return table.optimizer().has_custom();
                     }) ||
         std::any_of(layers.begin(), layers.end(), [](const job::Layer& layer) {
           return layer.optimizer().has_custom();
         });
}

// Returns true if variables may differ in their optimizers.
bool HasExclusions(const job::Optimizer& optimizer) {
  return !optimizer.lamb().exclude_from_weight_decay().empty() ||
         !optimizer.lamb().exclude_from_layer_adaptation().empty();
}

// Layers whose optimizers are equal have one common norm.
std::string WhyLayersNeedTheHost(const job::Model& model) {
  for (const job::Layer& layer : model.layer()) {
    if (!layer.optimizer().has_global_clipnorm()) continue;
    const std::string limit =
        absl::StrCat("optimizer.global_clipnorm of layer ", layer.name(),
                     " is that of variables with different ");
    if (HasExclusions(layer.optimizer())) return limit + "exclusions";
    if (layer.learning_rate_multiplier() != 1) return limit + "rates";
  }
  return "";
}

// Returns why the updates of a job's variables need the host: a common norm
// with tables, which are on the host, or of variables that differ in their
// rates or in what they are excluded from; local steps; micro-batches; a custom
// optimizer; a table with bounds.
std::string WhyUpdatesNeedTheHost(const job::Job& job) {
  if (job.parameter_server().has_local_steps()) {
    return "parameter_server.local_steps is set";
  }
  if (HasMicroBatches(job)) return "train.micro_batch_size is set";
  if (HasCustomOptimizer(job)) return "a custom optimizer works there";
  for (const job::SparseTable& table : job.model().sparse_table()) {
    if (!table.has_admission() && !table.has_eviction()) continue;
    return absl::StrCat("the sparse table \"", table.name(),
                        "\" has an admission or an eviction");
  }
  const std::string why_layers = WhyLayersNeedTheHost(job.model());
  if (!why_layers.empty() || !job.optimizer().has_global_clipnorm()) {
    return why_layers;
  }
  const std::string limit = "optimizer.global_clipnorm is ";
  if (HasExclusions(job.optimizer())) {
    return limit + "that of variables with different exclusions";
  }
  const auto& tables = job.model().sparse_table();
  if (!std::all_of(tables.begin(), tables.end(), [](const job::SparseTable& t) {
        return t.has_optimizer();
      })) {
    return limit + "that of variables and tables together";
  }
  const auto& layers = job.model().layer();
  const bool has_one_rate = std::all_of(
      layers.begin(), layers.end(),
      [](const job::Layer& l) { return l.learning_rate_multiplier() == 1; });
  return has_one_rate ? "" : limit + "that of variables with different rates";
}

std::string WhyReplicasNeedTheHost(const job::Job& job,
                                   const TrainingProcess& process) {
  if (job.strategy().mirrored().has_custom()) {
    return "an all-reduce of the user's own adds there";
  }
  if (job.model().sparse_table_size() > 0) return "the model has sparse tables";
  if (process.updating_devices < process.devices) {
    return "not all replicas are on CUDA devices";
  }
  if (process.devices > static_cast<int>(kMaxReplicasOfAMean)) {
    return absl::StrCat("there are more than ", kMaxReplicasOfAMean,
                        " replicas");
  }
  return WhyUpdatesNeedTheHost(job);
}

std::string WhyGroupsNeedTheHost(const job::Job& job) {
  if (AllReduceOf(job)->device_size() > 1) return "there are several devices";
  if (job.model().sparse_table_size() > 0) return "the model has sparse tables";
  return WhyUpdatesNeedTheHost(job);
}

// Puts the values on the devices, or says why they are on the host.
void Place(std::string why_host, Composition& composition) {
  if (why_host.empty()) composition.store = Store::kDevices;
  composition.why_host = std::move(why_host);
}

Composition OneReplica(const job::Job& job, const TrainingProcess& process) {
  Composition composition;
  if (process.updating_devices > 0) {
    Place(WhyUpdatesNeedTheHost(job), composition);
  }
  if (composition.store == Store::kDevices &&
      job.model().sparse_table_size() > 0) {
    composition.rows = TableStore::kDevice;
  }
  return composition;
}

Composition Mirrored(const job::Job& job, const TrainingProcess& process) {
  Composition composition = {.sum = Sum::kReplicas, .in_step = true};
  switch (job.strategy().mirrored().cross_device_ops()) {
    case job::Mirrored::REDUCTION_TO_ONE_DEVICE:
      composition.adder = Adder::kFirst;
      break;
    case job::Mirrored::NCCL:
      composition.adder = Adder::kNccl;
      break;
    default:
      break;
  }
  if (process.updating_devices > 0) {
    Place(WhyReplicasNeedTheHost(job, process), composition);
  }
  return composition;
}

Composition OfGroup(const job::Job& job, const TrainingProcess& process) {
  Composition composition = {.sum = Sum::kGroup, .in_step = true};
  if (AllReduceOf(job)->communication() == job::MultiWorkerMirrored::NCCL &&
      process.trains_variables) {
    composition.adder = Adder::kNccl;
    Place(WhyGroupsNeedTheHost(job), composition);
  }
  return composition;
}

Composition OfPs(const job::Job& job) {
  const bool in_step = job.parameter_server().has_synchronous();
  return {.store = Store::kPs,
          .rows = TableStore::kPs,
          .in_step = in_step,
          .rows_in_step = in_step};
}

Composition InCluster(const job::Job& job, const TrainingProcess& process) {
  switch (StrategyOf(job).value_or(StrategyKind::kParameterServer)) {
    case StrategyKind::kMultiWorkerMirrored:
      return OfGroup(job, process);
    case StrategyKind::kHybrid: {
      Composition composition = OfGroup(job, process);
      composition.rows = TableStore::kPs;
      composition.rows_in_step = HasTablesInStep(job);
      return composition;
    }
    default:
      return OfPs(job);
  }
}

}  // namespace

Composition Compose(const job::Job& job, const TrainingProcess& process) {
  if (process.is_in_cluster) return InCluster(job, process);
  switch (StrategyOf(job).value_or(StrategyKind::kDefault)) {
    case StrategyKind::kMirrored:
      return Mirrored(job, process);
    case StrategyKind::kCentralStorage:
    case StrategyKind::kMultiWorkerMirrored:  // the only worker
      return {.sum = Sum::kReplicas, .in_step = true};
    default:
      return OneReplica(job, process);
  }
}

bool HasGroups(StrategyKind strategy) {
  return strategy == StrategyKind::kMultiWorkerMirrored ||
         strategy == StrategyKind::kHybrid;
}

bool HasMicroBatches(const job::Job& job) {
  return job.train().has_micro_batch_size() &&
         job.train().micro_batch_size() < job.train().batch_size();
}

}  // namespace parasol
