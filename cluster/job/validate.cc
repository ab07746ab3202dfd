#include "cluster/job/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "cluster/job/global_batch_rate.h"
#include "cluster/job/validate_dataset.h"
#include "cluster/job/validate_layer.h"
#include "cluster/job/validate_metrics.h"
#include "cluster/job/validate_model_inputs.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/layer/variable_spec.h"
#include "ml/optimizer/assigned/averaged.h"
#include "ml/optimizer/clip.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 53;  // exact as a double
constexpr double kMaxSeconds = 1e9;
constexpr int64_t kMaxReplicas = 4096;
constexpr int64_t kMaxTables = 1024;
constexpr int64_t kMaxTableWidth = 65536;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxNiceness = 19;

absl::Status ValidateName(absl::string_view name) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= kMaxNameBytes &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return Fault("name", absl::StrCat("\"", absl::CHexEscape(name.substr(0, 100)),
                                    "\" is not 1 to ", kMaxNameBytes,
                                    " letters, digits, '-', '_', '.'"));
}

absl::StatusOr<Graph> ValidateModel(const job::Model& model) {
  for (int i = 0; i < model.input_shape_size(); ++i) {
    RETURN_IF_ERROR(RequireInRange(absl::StrCat("model.input_shape[", i, "]"),
                                   model.input_shape(i), 1, kMaxInt));
  }
  RETURN_IF_ERROR(ValidateLayers(model));
  if (!model.has_loss()) return Missing("model.loss");
  // Names and shapes: whether the layers fit each other, and the loss them.
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(model));
  RETURN_IF_ERROR(ValidateMetrics(model, graph.loss));
  return graph;
}

absl::Status ValidateOptimizer(const job::Optimizer& optimizer) {
  RETURN_IF_ERROR(CheckLearningRateSchedule(optimizer.learning_rate_schedule()))
      << "optimizer.learning_rate_schedule";
  RETURN_IF_ERROR(MakeOptimizer(optimizer).status()) << "optimizer";
  if (optimizer.has_ema()) {
    RETURN_IF_ERROR(CheckEma(optimizer.ema())) << "optimizer";
  }
  RETURN_IF_ERROR(CheckClipping(optimizer)) << "optimizer";
  RETURN_IF_ERROR(CheckGlobalBatchRates(optimizer)) << "optimizer";
  return absl::OkStatus();
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

// Keras clips the average of the replicas' gradients; workers clip their own.
absl::Status ValidateSynchronousClipping(const job::Job& job) {
  const job::ParameterServerStrategy& strategy = job.parameter_server();
  if (!strategy.has_synchronous() ||
      strategy.synchronous().replicas_to_aggregate() == 1) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(RequireNoClipping("optimizer", job.optimizer()));
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    RETURN_IF_ERROR(
        RequireNoClipping(absl::StrCat("model.sparse_table[", i, "].optimizer"),
                          job.model().sparse_table(i).optimizer()));
  }
  return absl::OkStatus();
}

absl::Status ValidateEnd(const job::TrainingEnd& end) {
  if (!end.has_steps() && !end.has_epochs()) {
    return Fault("end", "neither steps nor epochs is set");
  }
  if (end.has_steps()) {
    RETURN_IF_ERROR(RequireInRange("end.steps", end.steps(), 1, kMaxSteps));
  }
  if (end.has_epochs()) {
    RETURN_IF_ERROR(RequirePositive("end.epochs", end.epochs()));
  }
  return absl::OkStatus();
}

absl::Status ValidateWarmStart(const job::WarmStart& warm_start) {
  RETURN_IF_ERROR(
      RequirePath("warm_start.checkpoint", warm_start.checkpoint()));
  const auto is_prefix = [](absl::string_view name) {
    return name.empty() || absl::EndsWith(name, "/");
  };
  for (int i = 0; i < warm_start.map_size(); ++i) {
    const job::NameMap& map = warm_start.map(i);
    if (is_prefix(map.from()) == is_prefix(map.to()) &&
        map.from() != map.to()) {
      continue;
    }
    return Fault(absl::StrCat("warm_start.map[", i, "]"),
                 absl::StrCat("from \"", absl::CHexEscape(map.from()),
                              "\" to \"", absl::CHexEscape(map.to()),
                              "\": both are names, or both begin names and "
                              "end with '/', and they differ"));
  }
  return absl::OkStatus();
}

absl::Status ValidateCheckpoint(const job::CheckpointPolicy& checkpoint) {
  // It may come from --checkpoint_dir.
  if (checkpoint.has_directory()) {
    RETURN_IF_ERROR(
        RequirePath("checkpoint.directory", checkpoint.directory()));
  }
  if (checkpoint.has_every_steps()) {
    RETURN_IF_ERROR(RequireInRange("checkpoint.every_steps",
                                   checkpoint.every_steps(), 1, kMaxSteps));
  }
  if (checkpoint.has_every_seconds()) {
    RETURN_IF_ERROR(RequirePositive("checkpoint.every_seconds",
                                    checkpoint.every_seconds()));
    if (checkpoint.every_seconds() > kMaxSeconds) {
      return Fault("checkpoint.every_seconds",
                   absl::StrCat(checkpoint.every_seconds(), " is more than ",
                                kMaxSeconds));
    }
  }
  return RequireInRange("checkpoint.max_to_keep", checkpoint.max_to_keep(), 1,
                        kMaxInt);
}

absl::Status ValidateSparseTable(const std::string& path,
                                 const job::SparseTable& table) {
  if (table.name().empty()) return Missing(absl::StrCat(path, ".name"));
  if (!table.has_width()) return Missing(absl::StrCat(path, ".width"));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".width"), table.width(), 1,
                                 kMaxTableWidth));
  RETURN_IF_ERROR(CheckInitializer(table.initializer()))
      << path << ".initializer";
  if (table.initializer().has_glorot_uniform() ||
      table.initializer().has_he_normal()) {
    return Fault(absl::StrCat(path, ".initializer"),
                 "a table has no shape to scale it by");
  }
  RETURN_IF_ERROR(
      RequirePositive(absl::StrCat(path, ".learning_rate_multiplier"),
                      table.learning_rate_multiplier()));
  if (!table.has_optimizer()) return absl::OkStatus();
  if (table.optimizer().has_ema()) {
    return Fault(absl::StrCat(path, ".optimizer.ema"),
                 "rows have no average: only optimizer.ema, of the job's "
                 "variables, is there");
  }
  RETURN_IF_ERROR(ValidateOptimizer(table.optimizer())) << path;
  return absl::OkStatus();
}

absl::Status ValidateSparseTables(const job::Model& model,
                                  const std::vector<VariableSpec>& variables) {
  RETURN_IF_ERROR(RequireInRange("model.sparse_table",
                                 model.sparse_table_size(), 0, kMaxTables));
  std::set<std::string> names;
  for (const VariableSpec& variable : variables) names.insert(variable.name);
  for (int i = 0; i < model.sparse_table_size(); ++i) {
    const std::string path = absl::StrCat("model.sparse_table[", i, "]");
    const job::SparseTable& table = model.sparse_table(i);
    RETURN_IF_ERROR(ValidateSparseTable(path, table));
    const auto is_allowed = [](char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("_-./", c);
    };
    if (table.name().size() > kMaxNameBytes ||
        !std::all_of(table.name().begin(), table.name().end(), is_allowed)) {
      return Fault(
          absl::StrCat(path, ".name"),
          absl::StrCat("\"", absl::CHexEscape(table.name().substr(0, 100)),
                       "\" is not 1 to ", kMaxNameBytes,
                       " letters, digits, '_', '-', '.', '/'"));
    }
    if (!names.insert(table.name()).second) {
      return Fault(absl::StrCat(path, ".name"),
                   absl::StrCat(table.name(), " appears twice"));
    }
  }
  return absl::OkStatus();
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

absl::Status ValidateExchange(const job::ParameterServerStrategy& strategy) {
  if (strategy.has_bounded_staleness()) {
    const std::string path = "parameter_server.bounded_staleness.bound";
    if (!strategy.bounded_staleness().has_bound()) return Missing(path);
    RETURN_IF_ERROR(RequireInRange(path, strategy.bounded_staleness().bound(),
                                   0, kMaxSteps));
  }
  if (strategy.has_synchronous()) {
    RETURN_IF_ERROR(ValidateSynchronous(strategy.synchronous()));
  }
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

absl::Status ValidateAllReduce(const std::string& path,
                               const job::MultiWorkerMirrored& strategy) {
  if (strategy.communication() == job::MultiWorkerMirrored::NCCL) {
    return Fault(absl::StrCat(path, ".communication"),
                 "NCCL is not used yet: gradients are summed in host memory; "
                 "choose AUTO or RING");
  }
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".bytes_per_pack"),
                                 strategy.bytes_per_pack(), 0, kMaxBytes));
  RETURN_IF_ERROR(RequirePositive(absl::StrCat(path, ".timeout_seconds"),
                                  strategy.timeout_seconds()));
  if (strategy.timeout_seconds() <= kMaxSeconds) return absl::OkStatus();
  return Fault(
      absl::StrCat(path, ".timeout_seconds"),
      absl::StrCat(strategy.timeout_seconds(), " is more than ", kMaxSeconds));
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

absl::StatusOr<Graph> Validate(const job::Job& job) {
  RETURN_IF_ERROR(ValidateName(job.name()));
  if (!job.has_model()) return Missing("model");
  RETURN_IF_ERROR(ValidateModelInputs(job.model()));
  ASSIGN_OR_RETURN(Graph graph, ValidateModel(job.model()));
  if (!job.has_train()) return Missing("train");
  RETURN_IF_ERROR(ValidateDataset("train", job.train()));
  if (job.has_eval()) {
    RETURN_IF_ERROR(ValidateDataset("eval", job.eval()));
    if (job.eval().has_micro_batch_size()) {
      return Fault("eval.micro_batch_size",
                   "is for training; an evaluation has eval.batch_size");
    }
  }
  RETURN_IF_ERROR(ValidateOptimizer(job.optimizer()));
  RETURN_IF_ERROR(ValidateSynchronousClipping(job));
  RETURN_IF_ERROR(ValidateEnd(job.end()));
  RETURN_IF_ERROR(ValidateCheckpoint(job.checkpoint()));
  if (job.has_warm_start()) {
    RETURN_IF_ERROR(ValidateWarmStart(job.warm_start()));
  }
  RETURN_IF_ERROR(ValidateSparseTables(job.model(), graph.variables));
  RETURN_IF_ERROR(ValidatePartitioner(job.parameter_server()));
  RETURN_IF_ERROR(RequireInRange("worker.compute_niceness",
                                 job.worker().compute_niceness(), 0,
                                 kMaxNiceness));
  RETURN_IF_ERROR(ValidateExchange(job.parameter_server()));
  if (job.strategy().has_multi_worker_mirrored()) {
    RETURN_IF_ERROR(ValidateAllReduce("strategy.multi_worker_mirrored",
                                      job.strategy().multi_worker_mirrored()));
  }
  if (job.strategy().has_hybrid()) {
    RETURN_IF_ERROR(ValidateAllReduce("strategy.hybrid.all_reduce",
                                      job.strategy().hybrid().all_reduce()));
  }
  return graph;
}

}  // namespace parasol
