#include "cluster/job/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/job/evaluation_policy.h"
#include "cluster/job/followed/followed_set.h"
#include "cluster/job/name_pattern.h"
#include "cluster/job/strategy.h"
#include "cluster/job/validate_dataset.h"
#include "cluster/job/validate_layer.h"
#include "cluster/job/validate_metrics.h"
#include "cluster/job/validate_model_inputs.h"
#include "cluster/job/validate_optimizer.h"
#include "ml/device/device_name.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/input/object/object_uri.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/graph_faults.h"

namespace parasol {
namespace {

constexpr int64_t kMaxReplicas = 4096;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxNiceness = 19;
// A reader opens all files of a chain.
constexpr int64_t kMaxFullEvery = 100;

absl::Status ValidateName(absl::string_view name) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= kMaxNameBytes &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return Fault("name",
               absl::StrCat("\"", ShownText(name, 100), "\" is not 1 to ",
                            kMaxNameBytes, " letters, digits, '-', '_', '.'"));
}

// The part of a fault's message that names an element of the model,
// "model.input[2]".
absl::string_view ElementOf(absl::string_view fault) {
  constexpr absl::string_view kShape = "model.input_shape";
  if (absl::StartsWith(fault, kShape)) return kShape;
  return fault.substr(0, fault.find_first_of(".: ", fault.find('.') + 1));
}

// What `resolving` the model has found, unless a closer check of the same
// element is among the faults already.
void AddOthers(const Faults& resolving, Faults& faults) {
  std::set<std::string> known;
  for (const absl::Status& fault : faults.all()) {
    known.emplace(ElementOf(fault.message()));
  }
  for (const absl::Status& fault : resolving.all()) {
    const std::string element(ElementOf(fault.message()));
    if (known.contains(element) && !absl::StartsWith(element, "model.layer")) {
      continue;
    }
    faults.Add(fault);
  }
}

// The outputs are known although other parts of the model may be at fault.
CheckedGraph ValidateModel(const job::Model& model, Faults& faults) {
  Faults found = ValidateModelInputs(model);
  for (int i = 0; i < model.input_shape_size(); ++i) {
    found.Add(RequireInRange(absl::StrCat("model.input_shape[", i, "]"),
                             model.input_shape(i), 1, kMaxInt));
  }
  std::set<int> faulty;
  for (int i = 0; i < model.layer_size(); ++i) {
    Faults of_layer = ValidateLayer(i, model);
    if (!of_layer.empty()) faulty.insert(i);
    found.Add(std::move(of_layer));
  }
  if (!model.has_loss() && model.output().empty()) {
    found.Add(Missing("model.loss"));
  }
  // Names and shapes: whether the layers fit each other, and the loss them.
  Faults resolving;
  CheckedGraph checked = CheckGraph(model, faulty, resolving);
  AddOthers(resolving, found);
  if (checked.outputs.has_value()) {
    found.Add(ValidateMetrics(model, *checked.outputs));
  }
  if (!found.empty()) checked.graph.reset();
  faults.Add(std::move(found));
  return checked;
}

absl::Status RequireNoClipping(absl::string_view path,
                               const job::Optimizer& optimizer) {
  const auto fault = [path](absl::string_view field) {
    return Fault(absl::StrCat(path, ".", field),
                 "gradients are clipped before they are averaged, not after as "
                 "in Keras: with parameter_server.synchronous it needs "
                 "replicas_to_aggregate: 1");
  };
  if (optimizer.has_clipvalue()) return fault("clipvalue");
  if (optimizer.has_clipnorm()) return fault("clipnorm");
  if (optimizer.has_global_clipnorm()) return fault("global_clipnorm");
  return absl::OkStatus();
}

// Returns the fault of histograms that nobody would write.
absl::Status ValidateHistograms(const job::Job& job) {
  const std::string path = "tensorboard_histograms";
  if (!job.tensorboard_histograms()) return absl::OkStatus();
  if (!job.tensorboard()) {
    return Fault(path,
                 "they are in event files, which tensorboard: false "
                 "leaves out; set one of the two");
  }
  if (job.has_eval()) return absl::OkStatus();
  return Fault(path,
               "they are written at evaluations, and the job has none; "
               "set eval");
}

// Keras clips the average of the replicas' gradients; workers clip their own.
Faults ValidateSynchronousClipping(const job::Job& job) {
  Faults faults;
  const job::ParameterServerStrategy& strategy = job.parameter_server();
  if (!strategy.has_synchronous() ||
      strategy.synchronous().replicas_to_aggregate() == 1) {
    return faults;
  }
  faults.Add(RequireNoClipping("optimizer", job.optimizer()));
  for (int i = 0; i < job.model().layer_size(); ++i) {
    faults.Add(RequireNoClipping(absl::StrCat("model.layer[", i, "].optimizer"),
                                 job.model().layer(i).optimizer()));
  }
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    faults.Add(
        RequireNoClipping(absl::StrCat("model.sparse_table[", i, "].optimizer"),
                          job.model().sparse_table(i).optimizer()));
  }
  return faults;
}

Faults ValidateEnd(const job::TrainingEnd& end) {
  Faults faults;
  if (!end.has_steps() && !end.has_epochs() && !end.has_never()) {
    faults.Add(Fault("end", "neither steps nor epochs nor never is set"));
  }
  if (end.has_steps()) {
    faults.Add(RequireInRange("end.steps", end.steps(), 1, kMaxSteps));
  }
  if (end.has_epochs()) {
    faults.Add(RequirePositive("end.epochs", end.epochs()));
  }
  return faults;
}

Faults ValidateWarmStart(const job::WarmStart& warm_start) {
  Faults faults;
  faults.Add(RequirePath("warm_start.checkpoint", warm_start.checkpoint()));
  for (int i = 0; i < warm_start.map_size(); ++i) {
    const job::NameMap& map = warm_start.map(i);
    if (IsNamePrefix(map.from()) == IsNamePrefix(map.to()) &&
        map.from() != map.to()) {
      continue;
    }
    faults.Add(
        Fault(absl::StrCat("warm_start.map[", i, "]"),
              absl::StrCat("from \"", ShownText(map.from(), kMaxNameBytes),
                           "\" to \"", ShownText(map.to(), kMaxNameBytes),
                           "\": both are names, or both begin names and "
                           "end with '/', and they differ")));
  }
  return faults;
}

// Whether a store may have the checkpoints.
absl::Status ValidateStore(const std::string& uri) {
  const absl::StatusOr<ObjectUri> parts = ParseObjectUri(uri);
  if (!parts.ok()) {
    return Fault("checkpoint.directory", parts.status().message());
  }
  if (parts->scheme == "s3" || parts->scheme == "gs") return absl::OkStatus();
  return Fault(
      "checkpoint.directory",
      absl::StrCat(ShownText(uri), ": checkpoints are not kept in ",
                   parts->scheme, "://; name s3://, gs:// or a folder"));
}

Faults ValidateCheckpoint(const job::CheckpointPolicy& checkpoint) {
  Faults faults;
  // It may come from --checkpoint_dir.
  if (checkpoint.has_directory()) {
    faults.Add(RequirePath("checkpoint.directory", checkpoint.directory()));
    if (IsUri(checkpoint.directory())) {
      faults.Add(ValidateStore(checkpoint.directory()));
    }
  }
  if (checkpoint.has_every_steps()) {
    faults.Add(RequireInRange("checkpoint.every_steps",
                              checkpoint.every_steps(), 1, kMaxSteps));
  }
  if (checkpoint.has_every_seconds()) {
    faults.Add(ValidateSeconds("checkpoint.every_seconds",
                               checkpoint.every_seconds()));
  }
  faults.Add(RequireInRange("checkpoint.max_to_keep", checkpoint.max_to_keep(),
                            1, kMaxInt));
  faults.Add(RequireInRange("checkpoint.full_every", checkpoint.full_every(), 1,
                            kMaxFullEvery));
  if (checkpoint.has_keep_every_hours()) {
    faults.Add(ValidateSeconds("checkpoint.keep_every_hours",
                               checkpoint.keep_every_hours()));
  }
  return faults;
}

absl::Status ValidateSynchronous(const job::Synchronous& mode) {
  const std::string path = "parameter_server.synchronous";
  if (mode.has_total_replicas()) {
    RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".total_replicas"),
                                   mode.total_replicas(), 1, kMaxReplicas));
  }
  if (!mode.has_replicas_to_aggregate()) return absl::OkStatus();
  return RequireInRange(
      absl::StrCat(path, ".replicas_to_aggregate"),
      mode.replicas_to_aggregate(), 1,
      mode.has_total_replicas() ? mode.total_replicas() : kMaxReplicas);
}

absl::Status ValidatePushShare(const job::ParameterServerStrategy& strategy) {
  const double share = strategy.push_share();
  if (!(share > 0 && share <= 1)) {
    return Fault("parameter_server.push_share",
                 absl::StrCat(share, " is not above 0 and at most 1"));
  }
  if (share < 1 && strategy.has_synchronous()) {
    return Fault("parameter_server.push_share",
                 absl::StrCat(share,
                              " leaves something for a worker's next gradient, "
                              "which another worker may compute: synchronous "
                              "training takes 1 only"));
  }
  return absl::OkStatus();
}

Faults ValidateExchange(const job::ParameterServerStrategy& strategy) {
  Faults faults;
  if (strategy.has_bounded_staleness()) {
    const std::string path = "parameter_server.bounded_staleness.bound";
    const job::BoundedStaleness& mode = strategy.bounded_staleness();
    faults.Add(mode.has_bound()
                   ? RequireInRange(path, mode.bound(), 0, kMaxSteps)
                   : Missing(path));
  }
  if (strategy.has_synchronous()) {
    faults.Add(ValidateSynchronous(strategy.synchronous()));
  }
  faults.Add(ValidatePushShare(strategy));
  return faults;
}

// `other`: the field that says how else sums are taken; empty if it says
// nothing.
absl::Status ValidateCustomAllReduce(const std::string& path,
                                     const job::Custom& custom,
                                     const std::string& other) {
  if (custom.type().empty()) return Missing(path + ".custom.type");
  if (other.empty()) return absl::OkStatus();
  return Fault(path + ".custom",
               absl::StrCat("takes the place of ", other, ": leave that out"));
}

absl::Status ValidateMirrored(const job::Mirrored& strategy) {
  if (!strategy.has_custom()) return absl::OkStatus();
  return ValidateCustomAllReduce(
      "strategy.mirrored", strategy.custom(),
      strategy.has_cross_device_ops() ? "cross_device_ops" : "");
}

// Returns the fault of a worker's device that has no part in NCCL's sums.
// CheckDeviceNames() finds those that are no devices.
absl::Status CheckNcclDevices(const std::string& path,
                              const job::MultiWorkerMirrored& strategy) {
  if (strategy.communication() != job::MultiWorkerMirrored::NCCL) {
    return absl::OkStatus();
  }
  for (int i = 0; i < strategy.device_size(); ++i) {
    const absl::StatusOr<DeviceName> device =
        ParseDeviceName(strategy.device(i));
    if (!device.ok() || device->is_cuda) continue;
    return Fault(
        absl::StrCat(path, ".device[", i, "]"),
        absl::StrCat("NCCL sums between CUDA devices, and ", device->ToString(),
                     " is none; list CUDA devices alone, or choose "
                     "communication: AUTO"));
  }
  return absl::OkStatus();
}

Faults ValidateAllReduce(const std::string& path,
                         const job::MultiWorkerMirrored& strategy) {
  Faults faults;
  faults.Add(CheckDeviceNames(path, strategy.device()));
  faults.Add(CheckNcclDevices(path, strategy));
  if (strategy.has_custom()) {
    const bool is_auto =
        strategy.communication() == job::MultiWorkerMirrored::AUTO;
    faults.Add(ValidateCustomAllReduce(path, strategy.custom(),
                                       is_auto ? "" : "communication"));
  }
  faults.Add(RequireInRange(absl::StrCat(path, ".bytes_per_pack"),
                            strategy.bytes_per_pack(), 0, kMaxBytes));
  faults.Add(ValidateSeconds(absl::StrCat(path, ".timeout_seconds"),
                             strategy.timeout_seconds()));
  return faults;
}

absl::Status ValidatePartitioner(const job::ParameterServerStrategy& strategy) {
  using Strategy = job::ParameterServerStrategy;
  switch (strategy.partitioner_case()) {
    case Strategy::kFixedShards:
      return RequireInRange("parameter_server.fixed_shards.shards",
                            strategy.fixed_shards().shards(), 1, kMaxInt);
    case Strategy::kMinSize:
      RETURN_IF_ERROR(
          RequireInRange("parameter_server.min_size.min_shard_bytes",
                         strategy.min_size().min_shard_bytes(), 1, kMaxBytes));
      return RequireInRange("parameter_server.min_size.max_shards",
                            strategy.min_size().max_shards(), 0, kMaxInt);
    case Strategy::kMaxSize:
      RETURN_IF_ERROR(
          RequireInRange("parameter_server.max_size.max_shard_bytes",
                         strategy.max_size().max_shard_bytes(), 1, kMaxBytes));
      return RequireInRange("parameter_server.max_size.max_shards",
                            strategy.max_size().max_shards(), 0, kMaxInt);
    case Strategy::PARTITIONER_NOT_SET:
      break;
  }
  return Fault("parameter_server", "no partitioner is chosen");
}

}  // namespace

std::optional<Graph> Validate(const job::Job& job, Faults& faults) {
  faults.Add(ValidateName(job.name()));
  CheckedGraph checked;
  if (job.has_model()) {
    checked = ValidateModel(job.model(), faults);
  } else {
    faults.Add(Missing("model"));
  }
  if (job.has_train()) {
    faults.Add(ValidateDataset("train", job.train(), job.model()));
  } else {
    faults.Add(Missing("train"));
  }
  if (job.has_eval()) {
    faults.Add(ValidateDataset("eval", job.eval(), job.model()));
    if (job.eval().has_micro_batch_size()) {
      faults.Add(Fault("eval.micro_batch_size",
                       "is for training; an evaluation has eval.batch_size"));
    }
  }
  faults.Add(
      job.parameter_server().has_local_steps()
          ? ValidateLocalSteps(job, checked.graph ? &*checked.graph : nullptr)
          : ValidateOptimizer(job.optimizer()));
  if (!job.parameter_server().has_local_steps()) {
    faults.Add(ValidateSynchronousClipping(job));
  }
  faults.Add(ValidateHistograms(job));
  if (job.strategy().has_parameter_server()) {
    faults.Add(CheckPsCanUpdate(job));
  }
  faults.Add(ValidateEnd(job.end()));
  faults.Add(ValidateFollow(job));
  faults.Add(ValidateCheckpoint(job.checkpoint()));
  if (job.has_warm_start()) faults.Add(ValidateWarmStart(job.warm_start()));
  const Graph* const graph = checked.graph ? &*checked.graph : nullptr;
  faults.Add(ValidateLayerOptimizers(job, graph));
  faults.Add(ValidateSparseTables(job, graph));
  faults.Add(ValidateEvaluationPolicies(job, checked.outputs));
  faults.Add(ValidatePartitioner(job.parameter_server()));
  faults.Add(RequireInRange("worker.compute_niceness",
                            job.worker().compute_niceness(), 0, kMaxNiceness));
  if (job.worker().has_max_device_table_bytes()) {
    faults.Add(RequirePositive("worker.max_device_table_bytes",
                               job.worker().max_device_table_bytes()));
  }
  faults.Add(ValidateExchange(job.parameter_server()));
  faults.Add(ValidateMirrored(job.strategy().mirrored()));
  if (job.strategy().has_multi_worker_mirrored()) {
    faults.Add(ValidateAllReduce("strategy.multi_worker_mirrored",
                                 job.strategy().multi_worker_mirrored()));
  }
  if (job.strategy().has_hybrid()) {
    faults.Add(ValidateAllReduce("strategy.hybrid.all_reduce",
                                 job.strategy().hybrid().all_reduce()));
  }
  return std::move(checked.graph);
}

absl::StatusOr<Graph> Validate(const job::Job& job) {
  Faults faults;
  std::optional<Graph> graph = Validate(job, faults);
  RETURN_IF_ERROR(faults.first());
  return *std::move(graph);
}

}  // namespace parasol
