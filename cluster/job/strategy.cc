#include "cluster/job/strategy.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "cluster/job/durability.h"
#include "ml/device/device.h"
#include "ml/device/device_group.h"
#include "ml/device/device_name.h"

namespace parasol {
namespace {

using DeviceNames = google::protobuf::RepeatedPtrField<std::string>;

std::string Quoted(const std::string& path, const std::string& name) {
  return absl::StrCat(path, ": \"", name, "\"");
}

absl::StatusOr<std::string> DeviceAt(const std::string& path,
                                     const std::string& name) {
  ASSIGN_OR_RETURN(const DeviceName device, ParseDeviceName(name),
                   _ << Quoted(path, name));
  std::string canonical = device.ToString();
  RETURN_IF_ERROR(Device::CheckName(canonical)) << Quoted(path, name);
  return canonical;
}

std::string ElementOf(const std::string& path, int i) {
  return absl::StrCat(path, ".device[", i, "]");
}

absl::StatusOr<std::vector<std::string>> DevicesOf(const std::string& path,
                                                   const DeviceNames& names,
                                                   absl::string_view flag) {
  if (names.empty() && flag != "auto") return std::vector{std::string(flag)};
  if (names.empty()) {
    std::vector<std::string> all = Device::CudaNames();
    if (all.empty()) all.push_back(DeviceName().ToString());
    return all;
  }
  RETURN_IF_ERROR(CheckDeviceNames(path, names));
  std::vector<std::string> devices;
  for (int i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(devices.emplace_back(),
                     DeviceAt(ElementOf(path, i), names[i]));
  }
  return devices;
}

absl::Status CheckFlag(absl::string_view flag, absl::string_view path,
                       const std::vector<std::string>& devices) {
  if (flag == "auto") return absl::OkStatus();
  const absl::StatusOr<DeviceName> device = ParseDeviceName(flag);
  if (device.ok() && devices.size() == 1 &&
      device->ToString() == devices.front()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", flag, ": ", path,
                   " names the devices; leave the flag out, or the strategy"));
}

absl::Status CheckStrategyClipping(const job::Optimizer& optimizer,
                                   absl::string_view path) {
  const auto fault = [path](absl::string_view field, double value) {
    return Fault(
        absl::StrCat(path, ".", field),
        absl::StrCat(value,
                     ", but gradients are clipped before they are averaged, "
                     "not after as in Keras: with several replicas leave ",
                     field, " out"));
  };
  if (optimizer.has_clipvalue()) {
    return fault("clipvalue", optimizer.clipvalue());
  }
  if (optimizer.has_clipnorm()) return fault("clipnorm", optimizer.clipnorm());
  if (optimizer.has_global_clipnorm()) {
    return fault("global_clipnorm", optimizer.global_clipnorm());
  }
  return absl::OkStatus();
}

absl::Status CheckReplicas(const job::Job& job) {
  RETURN_IF_ERROR(CheckStrategyClipping(job.optimizer(), "optimizer"));
  for (int i = 0; i < job.model().layer_size(); ++i) {
    RETURN_IF_ERROR(
        CheckStrategyClipping(job.model().layer(i).optimizer(),
                              absl::StrCat("model.layer[", i, "].optimizer")));
  }
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    RETURN_IF_ERROR(CheckStrategyClipping(
        job.model().sparse_table(i).optimizer(),
        absl::StrCat("model.sparse_table[", i, "].optimizer")));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProcessReplicas> OneDevice(const job::OneDevice& settings,
                                          absl::string_view flag) {
  const std::string path = "strategy.one_device";
  if (!settings.has_device() && flag != "auto") {
    return ProcessReplicas{.strategy = StrategyKind::kOneDevice,
                           .devices = {std::string(flag)}};
  }
  if (!settings.has_device()) {
    return Fault(absl::StrCat(path, ".device"),
                 "is not set, but needed; choose one with --device=cpu, or "
                 "with --set=strategy.one_device.device=cpu:0");
  }
  ASSIGN_OR_RETURN(std::string device,
                   DeviceAt(absl::StrCat(path, ".device"), settings.device()));
  ProcessReplicas replicas{.strategy = StrategyKind::kOneDevice,
                           .devices = {std::move(device)}};
  RETURN_IF_ERROR(CheckFlag(flag, path, replicas.devices));
  return replicas;
}

absl::StatusOr<ProcessReplicas> InStep(StrategyKind kind,
                                       const DeviceNames& names,
                                       const job::Job& job,
                                       absl::string_view flag) {
  const std::string path = absl::StrCat("strategy.", StrategyName(kind));
  ProcessReplicas replicas;
  replicas.strategy = kind;
  ASSIGN_OR_RETURN(replicas.devices, DevicesOf(path, names, flag));
  if (!names.empty()) {
    RETURN_IF_ERROR(CheckFlag(flag, path, replicas.devices));
  }
  if (replicas.devices.size() > 1) {
    RETURN_IF_ERROR(CheckReplicas(job));
  }
  return replicas;
}

// `path` is the setting that asks for NCCL, and `instead` what to do without.
absl::Status CheckNccl(const std::vector<std::string>& devices,
                       const std::string& path, const std::string& instead) {
  for (const std::string& name : devices) {
    const absl::StatusOr<DeviceName> device = ParseDeviceName(name);
    if (device.ok() && device->is_cuda) continue;
    return Fault(path, absl::StrCat("NCCL sums between CUDA devices, and ",
                                    name, " is none; ", instead));
  }
  const absl::Status found = DeviceGroup::CheckNccl();
  if (found.ok()) return absl::OkStatus();
  return Fault(path,
               absl::StrCat(found.message(), "; install NCCL 2, or ", instead));
}

absl::StatusOr<ProcessReplicas> Mirrored(const job::Mirrored& settings,
                                         const job::Job& job,
                                         absl::string_view flag) {
  ASSIGN_OR_RETURN(
      ProcessReplicas replicas,
      InStep(StrategyKind::kMirrored, settings.device(), job, flag));
  if (settings.cross_device_ops() == job::Mirrored::NCCL) {
    RETURN_IF_ERROR(CheckNccl(replicas.devices,
                              "strategy.mirrored.cross_device_ops",
                              "choose HIERARCHICAL_COPY"));
  }
  return replicas;
}

// Returns the replicas of the only worker, whose settings are a cluster's.
absl::StatusOr<ProcessReplicas> OnlyWorker(
    const job::MultiWorkerMirrored& settings, const job::Job& job,
    absl::string_view flag) {
  ASSIGN_OR_RETURN(
      ProcessReplicas replicas,
      InStep(StrategyKind::kMultiWorkerMirrored, settings.device(), job, flag));
  RETURN_IF_ERROR(CheckGroupCanExchange(job));
  if (settings.communication() == job::MultiWorkerMirrored::NCCL) {
    RETURN_IF_ERROR(CheckNccl(replicas.devices,
                              "strategy.multi_worker_mirrored.communication",
                              "choose AUTO"));
  }
  return replicas;
}

// Returns OK if a job whose strategy is resolved can follow its training set,
// or does not. `is_cluster`: there are ps and workers.
absl::Status CheckMayFollow(const job::Job& job, bool is_cluster) {
  if (!job.train().follow()) return absl::OkStatus();
  if (!is_cluster) {
    return Fault("train.follow",
                 "needs a cluster with ps: start it with the launcher's "
                 "--ps=1, or with TF_CONFIG");
  }
  if (AllReduceOf(job) != nullptr) {
    return Fault("train.follow",
                 "needs workers whose variables ps have; choose "
                 "--strategy=parameter_server");
  }
  if (job.parameter_server().has_synchronous()) {
    return Fault("parameter_server.synchronous",
                 "a set that grows (train.follow) is trained asynchronously "
                 "or with bounded_staleness; choose one of them");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<StrategyKind> StrategyOf(const job::Job& job) {
  switch (job.strategy().kind_case()) {
    case job::Strategy::kParameterServer:
      return StrategyKind::kParameterServer;
    case job::Strategy::kDefault:
      return StrategyKind::kDefault;
    case job::Strategy::kOneDevice:
      return StrategyKind::kOneDevice;
    case job::Strategy::kMirrored:
      return StrategyKind::kMirrored;
    case job::Strategy::kCentralStorage:
      return StrategyKind::kCentralStorage;
    case job::Strategy::kMultiWorkerMirrored:
      return StrategyKind::kMultiWorkerMirrored;
    case job::Strategy::kHybrid:
      return StrategyKind::kHybrid;
    case job::Strategy::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

void ChooseStrategy(StrategyKind kind, job::Job& job) {
  if (StrategyOf(job) == kind) return;
  job::Strategy& strategy = *job.mutable_strategy();
  switch (kind) {
    case StrategyKind::kParameterServer:
      strategy.mutable_parameter_server();
      break;
    case StrategyKind::kDefault:
      strategy.mutable_default_();
      break;
    case StrategyKind::kOneDevice:
      strategy.mutable_one_device();
      break;
    case StrategyKind::kMirrored:
      strategy.mutable_mirrored();
      break;
    case StrategyKind::kCentralStorage:
      strategy.mutable_central_storage();
      break;
    case StrategyKind::kMultiWorkerMirrored:
      strategy.mutable_multi_worker_mirrored();
      break;
    case StrategyKind::kHybrid:
      strategy.mutable_hybrid();
      break;
  }
}

bool IsMultiWorkerMirrored(const job::Job& job) {
  return job.strategy().has_multi_worker_mirrored();
}

bool IsHybrid(const job::Job& job) { return job.strategy().has_hybrid(); }

const job::MultiWorkerMirrored* AllReduceOf(const job::Job& job) {
  if (IsMultiWorkerMirrored(job)) {
    return &job.strategy().multi_worker_mirrored();
  }
  return IsHybrid(job) ? &job.strategy().hybrid().all_reduce() : nullptr;
}

int ReplicasOfWorker(const job::Job& job) {
  const job::MultiWorkerMirrored* const workers = AllReduceOf(job);
  return workers == nullptr ? 1 : std::max(1, workers->device_size());
}

absl::StatusOr<std::vector<std::string>> ResolveWorkerDevices(
    const job::Job& job, absl::string_view device) {
  const job::MultiWorkerMirrored* const workers = AllReduceOf(job);
  if (workers == nullptr || workers->device().empty()) {
    return std::vector{std::string(device)};
  }
  const std::string path = IsHybrid(job) ? "strategy.hybrid.all_reduce"
                                         : "strategy.multi_worker_mirrored";
  ASSIGN_OR_RETURN(std::vector<std::string> devices,
                   DevicesOf(path, workers->device(), device));
  RETURN_IF_ERROR(CheckFlag(device, path, devices));
  return devices;
}

absl::Status CheckDeviceNames(const std::string& path,
                              const DeviceNames& names) {
  std::set<std::string> distinct;
  for (int i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(const DeviceName device, ParseDeviceName(names[i]),
                     _ << Quoted(ElementOf(path, i), names[i]));
    if (!distinct.insert(device.ToString()).second) {
      return Fault(ElementOf(path, i), absl::StrCat(device.ToString(),
                                                    " appears twice; a second "
                                                    "replica of one processor "
                                                    "is cpu:1"));
    }
  }
  return absl::OkStatus();
}

bool HasTablesInStep(const job::Job& job) {
  return job.parameter_server().has_synchronous() &&
         job.strategy().hybrid().tables() != job::Hybrid::ASYNCHRONOUS;
}

absl::Status CheckHasVariables(const job::Job& job, size_t variables) {
  if (!IsHybrid(job) || variables > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "strategy.hybrid: all of the model's variables are sparse tables, so "
      "there are none to sum between workers; choose "
      "--strategy=parameter_server");
}

absl::Status CheckHasWorkerZero(const job::Job& job,
                                const std::map<int, std::string>& workers) {
  if (!IsHybrid(job) || workers.contains(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "cluster.worker: no worker/0, which loads and saves the variables "
      "under hybrid; add it");
}

// The ps and worker 0, not the other workers, hear of a rate that is reduced.
absl::Status CheckRateCanBeReduced(const job::Job& job) {
  if (!job.optimizer().has_reduce_on_plateau() || AllReduceOf(job) == nullptr) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer.reduce_on_plateau: strategy ",
                   IsHybrid(job) ? "hybrid" : "multi_worker_mirrored",
                   " can't change the rate of workers while they train; use "
                   "parameter_server or a learning_rate_schedule"));
}

absl::Status CheckPsCanUpdate(const job::Job& job) {
  std::string path = job.optimizer().has_lamb() ? "optimizer.lamb" : "";
  for (int i = 0; i < job.model().layer_size() && path.empty(); ++i) {
    if (!job.model().layer(i).optimizer().has_lamb()) continue;
    path = absl::StrCat("model.layer[", i, "].optimizer.lamb");
  }
  if (path.empty()) return absl::OkStatus();
  return Fault(path,
               "a step of LAMB needs the norms of a whole variable, of which a "
               "ps has parts; choose strategy.multi_worker_mirrored, without "
               "ps, or strategy.hybrid, if the model has sparse tables, or "
               "optimizer.adamw");
}

absl::Status CheckTablesOfWorkers(const job::Job& job) {
  const std::string what_to_do =
      "; leave it out, or train with ps: a cluster with ps, under "
      "parameter_server or hybrid";
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    const job::SparseTable& table = job.model().sparse_table(i);
    const std::string path = absl::StrCat("model.sparse_table[", i, "]");
    if (table.has_tier()) {
      return Fault(absl::StrCat(path, ".tier"),
                   absl::StrCat("tables of workers are in memory", what_to_do));
    }
    if (table.values() != job::SparseTable::FLOAT32) {
      return Fault(
          absl::StrCat(path, ".values"),
          absl::StrCat("is ", job::SparseTable::Values_Name(table.values()),
                       ", but tables of workers have float32", what_to_do));
    }
  }
  return absl::OkStatus();
}

bool StreamsFragments(const job::Job& job) {
  const job::LocalSteps& local = job.parameter_server().local_steps();
  return local.fragments() > 1 || local.overlap_steps() > 0;
}

// A step of a group is made as a whole.
absl::Status CheckGroupCanExchange(const job::Job& job) {
  if (!StreamsFragments(job)) return absl::OkStatus();
  return Fault(absl::StrCat("parameter_server.local_steps.",
                            job.parameter_server().local_steps().fragments() > 1
                                ? "fragments"
                                : "overlap_steps"),
               "workers without ps exchange all at once; leave it out, or add "
               "ps to the cluster");
}

absl::Status ResolveClusterStrategy(std::optional<StrategyKind> flag,
                                    int num_ps, job::Job& job) {
  if (flag) ChooseStrategy(*flag, job);
  const StrategyKind kind = StrategyOf(job).value_or(StrategyOfCluster(num_ps));
  if (num_ps == 0) ChooseStrategy(kind, job);
  const std::string path = absl::StrCat("strategy.", StrategyName(kind));
  if (IsLocal(kind)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " trains in one process, but this is a cluster; leave TF_CONFIG and "
        "--cluster_spec out, or choose another strategy with --set=strategy"));
  }
  const bool needs_ps = kind != StrategyKind::kMultiWorkerMirrored;
  if (needs_ps && num_ps == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the cluster has no ps; add ps tasks, or choose ",
                     "--strategy=multi_worker_mirrored"));
  }
  RETURN_IF_ERROR(needs_ps ? CheckDurability(job, num_ps)
                           : CheckTablesOfWorkers(job));
  RETURN_IF_ERROR(CheckMayFollow(job, /*is_cluster=*/true));
  if (kind == StrategyKind::kParameterServer) return CheckPsCanUpdate(job);
  RETURN_IF_ERROR(CheckGroupCanExchange(job));
  if (!needs_ps && num_ps > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the cluster has ", num_ps,
        " ps, but workers alone train under it; leave the ps out"));
  }
  if (needs_ps && job.model().sparse_table_size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the model has no sparse table, so there is nothing for the ",
        "ps; leave them out, and choose --strategy=multi_worker_mirrored"));
  }
  return CheckReplicas(job);
}

absl::StatusOr<ProcessReplicas> ResolveProcessReplicas(
    const job::Job& job, absl::string_view device) {
  RETURN_IF_ERROR(CheckTablesOfWorkers(job));
  RETURN_IF_ERROR(CheckMayFollow(job, /*is_cluster=*/false));
  const job::Strategy& strategy = job.strategy();
  switch (StrategyOf(job).value_or(StrategyKind::kDefault)) {
    case StrategyKind::kOneDevice:
      return OneDevice(strategy.one_device(), device);
    case StrategyKind::kMirrored:
      return Mirrored(strategy.mirrored(), job, device);
    case StrategyKind::kCentralStorage:
      return InStep(StrategyKind::kCentralStorage,
                    strategy.central_storage().device(), job, device);
    case StrategyKind::kParameterServer:
      return absl::InvalidArgumentError(
          "strategy.parameter_server: needs a cluster with ps; set TF_CONFIG, "
          "or "
          "choose --strategy=default");
    case StrategyKind::kHybrid:
      return absl::InvalidArgumentError(
          "strategy.hybrid: needs a cluster with ps; set TF_CONFIG, or choose "
          "--strategy=default");
    case StrategyKind::kMultiWorkerMirrored:
      return OnlyWorker(strategy.multi_worker_mirrored(), job, device);
    case StrategyKind::kDefault:
      break;
  }
  return ProcessReplicas{.devices = {std::string(device)}};
}

}  // namespace parasol
