#include "cluster/job/defaults.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "cluster/job/dataset_defaults.h"
#include "cluster/job/evaluation_policy.h"
#include "cluster/job/global_batch_rate.h"
#include "cluster/job/layer_defaults.h"
#include "cluster/job/strategy.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/loss/loss_kinds.h"
#include "ml/metric/metric_spec.h"
#include "ml/optimizer/assigned/averaged.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

void FillOptimizer(job::Optimizer& optimizer) {
  FillDefaults(optimizer);
  if (optimizer.has_learning_rate_schedule()) {
    FillDefaults(*optimizer.mutable_learning_rate_schedule());
  }
  if (optimizer.has_ema()) FillDefaults(*optimizer.mutable_ema());
}

void FillSparseTable(job::SparseTable& table) {
  if (table.initializer().kind_case() == job::Initializer::KIND_NOT_SET) {
    table.mutable_initializer()->mutable_random_uniform();
  }
  FillInitializer(*table.mutable_initializer());
  if (table.has_optimizer()) FillOptimizer(*table.mutable_optimizer());
}

void FillOutput(job::Output& output) {
  PARASOL_SET_DEFAULT(output, layer, output.name());
  if (output.has_loss()) FillDefaults(*output.mutable_loss());
  PARASOL_SET_DEFAULT(output, weight, 1.0);
  for (job::Metric& metric : *output.mutable_metric()) FillDefaults(metric);
}

void FillModel(job::Model& model) {
  FillModelInputDefaults(model);
  if (model.has_loss()) FillDefaults(*model.mutable_loss());
  for (job::Metric& metric : *model.mutable_metric()) FillDefaults(metric);
  for (job::Output& output : *model.mutable_output()) FillOutput(output);
  for (int i = 0; i < model.layer_size(); ++i) {
    job::Layer& layer = *model.mutable_layer(i);
    FillLayer(i, layer);
    if (layer.has_optimizer()) FillOptimizer(*layer.mutable_optimizer());
  }
  for (auto& table : *model.mutable_sparse_table()) FillSparseTable(table);
}

void FillCheckpoint(job::CheckpointPolicy& checkpoint) {
  if (!checkpoint.has_every_steps()) {
    PARASOL_SET_DEFAULT(checkpoint, every_seconds, 60.0);
  }
  PARASOL_SET_DEFAULT(checkpoint, max_to_keep, 5);
  PARASOL_SET_DEFAULT(checkpoint, full_every, 1);
}

void FillParameterServer(job::ParameterServerStrategy& strategy) {
  if (strategy.placement() ==
      job::ParameterServerStrategy::PLACEMENT_UNSPECIFIED) {
    strategy.set_placement(job::ParameterServerStrategy::BALANCED_BYTES);
  }
  if (strategy.partitioner_case() ==
      job::ParameterServerStrategy::PARTITIONER_NOT_SET) {
    strategy.mutable_min_size();
  }
  if (strategy.has_min_size()) {
    PARASOL_SET_DEFAULT(*strategy.mutable_min_size(), min_shard_bytes,
                        256 << 10);
    PARASOL_SET_DEFAULT(*strategy.mutable_min_size(), max_shards, 0);
  }
  if (strategy.has_max_size()) {
    PARASOL_SET_DEFAULT(*strategy.mutable_max_size(), max_shards, 0);
  }
  if (strategy.consistency_case() ==
      job::ParameterServerStrategy::CONSISTENCY_NOT_SET) {
    strategy.mutable_asynchronous();
  }
  if (strategy.has_synchronous() &&
      strategy.synchronous().lost_worker() ==
          job::Synchronous::LOST_WORKER_UNSPECIFIED) {
    strategy.mutable_synchronous()->set_lost_worker(job::Synchronous::REASSIGN);
  }
  PARASOL_SET_DEFAULT(strategy, wire_encoding, job::FLOAT32);
  PARASOL_SET_DEFAULT(strategy, push_share, 1.0);
  PARASOL_SET_DEFAULT(strategy, durability,
                      job::ParameterServerStrategy::CHECKPOINT);
}

// What has values applies the outer optimizer, and takes a job's own as that.
void FillLocalSteps(job::Job& job) {
  if (!job.parameter_server().has_local_steps()) return;
  job::LocalSteps& local =
      *job.mutable_parameter_server()->mutable_local_steps();
  if (local.has_outer() && !local.has_inner()) {
    local.mutable_inner()->Swap(job.mutable_optimizer());
    job.mutable_optimizer()->Swap(local.mutable_outer());
    local.clear_outer();
  }
  if (local.has_inner()) FillOptimizer(*local.mutable_inner());
  PARASOL_SET_DEFAULT(local, fragments, 1);
  PARASOL_SET_DEFAULT(local, overlap_steps, 0);
}

// An exchange has the examples of all its local steps.
absl::Status FillLocalBatch(job::Job& job) {
  if (!job.parameter_server().has_local_steps()) return absl::OkStatus();
  job::LocalSteps& local =
      *job.mutable_parameter_server()->mutable_local_steps();
  if (local.has_batch_size()) return absl::OkStatus();
  const int64_t all =
      int64_t{local.steps()} * std::max(1, job.train().batch_size());
  if (local.steps() < 1 || all > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter_server.local_steps.steps: ", local.steps(),
                     " steps of ", job.train().batch_size(), " examples are ",
                     all, "; an exchange may have 1 to 2147483647"));
  }
  local.set_batch_size(job.train().batch_size());
  job.mutable_train()->set_batch_size(static_cast<int>(all));
  return absl::OkStatus();
}

void FillMultiWorkerMirrored(job::MultiWorkerMirrored& strategy) {
  PARASOL_SET_DEFAULT(strategy, communication, job::MultiWorkerMirrored::AUTO);
  const bool by_nccl =
      strategy.communication() == job::MultiWorkerMirrored::NCCL;
  PARASOL_SET_DEFAULT(strategy, bytes_per_pack, by_nccl ? 4 << 20 : 1 << 20);
  PARASOL_SET_DEFAULT(strategy, timeout_seconds, 300.0);
}

void FillHybrid(job::Hybrid& strategy) {
  if (strategy.tables() == job::Hybrid::TABLES_UNSPECIFIED) {
    strategy.set_tables(job::Hybrid::SYNCHRONOUS);
  }
  FillMultiWorkerMirrored(*strategy.mutable_all_reduce());
}

void FillStrategy(job::Strategy& strategy) {
  if (strategy.has_multi_worker_mirrored()) {
    FillMultiWorkerMirrored(*strategy.mutable_multi_worker_mirrored());
  }
  if (strategy.has_hybrid()) FillHybrid(*strategy.mutable_hybrid());
}

// Gives each worker a replica on each of its devices; the others compute a lost
// worker's.
void SynchronizeWorkers(int workers, job::Job& job) {
  const int replicas = workers * ReplicasOfWorker(job);
  job::Synchronous& mode =
      *job.mutable_parameter_server()->mutable_synchronous();
  mode.set_replicas_to_aggregate(replicas);
  mode.set_total_replicas(replicas);
  mode.set_lost_worker(job::Synchronous::REASSIGN);
  // A setting of variables' way to ps, which they don't take.
  job.mutable_parameter_server()->set_push_share(1);
}

void FillWorker(job::WorkerSettings& worker) {
  if (worker.non_finite_loss() ==
      job::WorkerSettings::NON_FINITE_LOSS_UNSPECIFIED) {
    worker.set_non_finite_loss(job::WorkerSettings::STOP);
  }
  PARASOL_SET_DEFAULT(worker, overlap, true);
  PARASOL_SET_DEFAULT(worker, payload_lanes, job::WorkerSettings::AUTO);
  PARASOL_SET_DEFAULT(worker, compute_niceness, 10);
}

absl::Status SetRates(int replicas, job::Job& job) {
  const int64_t batch = job.train().batch_size();
  if (job.has_optimizer()) {
    RETURN_IF_ERROR(
        SetRateOfGlobalBatch(batch, replicas, *job.mutable_optimizer()))
        << "optimizer";
  }
  if (!job.has_model()) return absl::OkStatus();
  for (job::Layer& layer : *job.mutable_model()->mutable_layer()) {
    if (!layer.has_optimizer()) continue;
    RETURN_IF_ERROR(
        SetRateOfGlobalBatch(batch, replicas, *layer.mutable_optimizer()))
        << "layer \"" << layer.name() << "\": optimizer";
  }
  for (job::SparseTable& table : *job.mutable_model()->mutable_sparse_table()) {
    if (!table.has_optimizer()) continue;
    RETURN_IF_ERROR(
        SetRateOfGlobalBatch(batch, replicas, *table.mutable_optimizer()))
        << "sparse_table \"" << table.name() << "\": optimizer";
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaults(job::Job& job) {
  PARASOL_SET_DEFAULT(job, name, "job");
  PARASOL_SET_DEFAULT(job, seed, 0);
  if (job.has_model()) FillModel(*job.mutable_model());
  FillDatasetDefaults(job);
  FillLocalSteps(job);
  if (job.has_optimizer()) FillOptimizer(*job.mutable_optimizer());
  FillCheckpoint(*job.mutable_checkpoint());
  FillParameterServer(*job.mutable_parameter_server());
  FillWorker(*job.mutable_worker());
  if (job.has_strategy()) FillStrategy(*job.mutable_strategy());
  FillEvaluationPolicies(job);
  PARASOL_SET_DEFAULT(job, tensorboard, true);
  PARASOL_SET_DEFAULT(job, tensorboard_histograms, false);
}

absl::Status FillClusterDefaults(job::Job& job, int workers) {
  if (job.has_strategy()) FillStrategy(*job.mutable_strategy());
  if (job.strategy().has_multi_worker_mirrored() ||
      job.strategy().has_hybrid()) {
    SynchronizeWorkers(workers, job);
  }
  if (!job.parameter_server().has_synchronous()) return SetReplicas(1, job);
  job::Synchronous& mode =
      *job.mutable_parameter_server()->mutable_synchronous();
  if (!mode.has_replicas_to_aggregate()) {
    mode.set_replicas_to_aggregate(
        mode.has_total_replicas() ? std::min(workers, mode.total_replicas())
                                  : workers);
  }
  PARASOL_SET_DEFAULT(mode, total_replicas, mode.replicas_to_aggregate());
  return SetReplicas(mode.total_replicas(), job);
}

absl::Status SetReplicas(int replicas, job::Job& job) {
  if (replicas < 1) return absl::OkStatus();  // Validate() names it
  if (job.train().has_global_batch_size()) {
    const int global = job.train().global_batch_size();
    if (global % replicas != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "train.global_batch_size: ", global, " examples can't be split into ",
          replicas, " replicas of equal size; use a multiple of ", replicas));
    }
    job.mutable_train()->set_batch_size(global / replicas);
    job.mutable_train()->clear_global_batch_size();
  }
  if (job.eval().has_global_batch_size()) {
    job.mutable_eval()->set_batch_size(job.eval().global_batch_size());
    job.mutable_eval()->clear_global_batch_size();
  }
  RETURN_IF_ERROR(SetRates(replicas, job));
  return FillLocalBatch(job);
}

job::Job WithLocalStepsAsWritten(job::Job job) {
  if (!job.parameter_server().local_steps().has_inner()) return job;
  job::LocalSteps& local =
      *job.mutable_parameter_server()->mutable_local_steps();
  local.mutable_outer()->Swap(job.mutable_optimizer());
  job.mutable_optimizer()->Swap(local.mutable_inner());
  local.clear_inner();
  if (!local.has_batch_size()) return job;
  job.mutable_train()->set_batch_size(local.batch_size());
  local.clear_batch_size();
  return job;
}

}  // namespace parasol
