#include "cluster/job/defaults.h"

#include <algorithm>
#include <cstdint>

#include "cluster/job/dataset_defaults.h"
#include "cluster/job/layer_defaults.h"
#include "cluster/job/set_default.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

void FillLoss(job::Loss& loss) {
  switch (loss.kind_case()) {
    case job::Loss::kSparseCategoricalCrossentropy:
      SET_DEFAULT(*loss.mutable_sparse_categorical_crossentropy(),
                  label_smoothing, 0.0);
      break;
    case job::Loss::kCategoricalCrossentropy:
      SET_DEFAULT(*loss.mutable_categorical_crossentropy(), label_smoothing,
                  0.0);
      break;
    case job::Loss::kBinaryCrossentropy:
      SET_DEFAULT(*loss.mutable_binary_crossentropy(), label_smoothing, 0.0);
      break;
    case job::Loss::kMeanSquaredError:
    case job::Loss::KIND_NOT_SET:
      break;
  }
}

// Sets the defaults of tf.keras.optimizers.schedules.
void FillSchedule(job::LearningRateSchedule& schedule) {
  switch (schedule.kind_case()) {
    case job::LearningRateSchedule::kExponentialDecay:
      SET_DEFAULT(*schedule.mutable_exponential_decay(), staircase, false);
      break;
    case job::LearningRateSchedule::kPolynomialDecay:
      SET_DEFAULT(*schedule.mutable_polynomial_decay(), end_learning_rate,
                  0.0001);
      SET_DEFAULT(*schedule.mutable_polynomial_decay(), power, 1.0);
      SET_DEFAULT(*schedule.mutable_polynomial_decay(), cycle, false);
      break;
    case job::LearningRateSchedule::kInverseTimeDecay:
      SET_DEFAULT(*schedule.mutable_inverse_time_decay(), staircase, false);
      break;
    case job::LearningRateSchedule::kCosineDecay:
      SET_DEFAULT(*schedule.mutable_cosine_decay(), alpha, 0.0);
      break;
    case job::LearningRateSchedule::kPiecewiseConstantDecay:
    case job::LearningRateSchedule::KIND_NOT_SET:
      break;
  }
}

void FillOptimizer(job::Optimizer& optimizer) {
  FillDefaults(optimizer);
  if (optimizer.has_learning_rate_schedule()) {
    FillSchedule(*optimizer.mutable_learning_rate_schedule());
  }
}

void FillSparseTable(job::SparseTable& table) {
  if (table.initializer().kind_case() == job::Initializer::KIND_NOT_SET) {
    table.mutable_initializer()->mutable_random_uniform();
  }
  FillInitializer(*table.mutable_initializer());
  if (table.has_optimizer()) FillOptimizer(*table.mutable_optimizer());
}

void FillModel(job::Model& model) {
  FillModelInputDefaults(model);
  if (model.has_loss()) FillLoss(*model.mutable_loss());
  for (int i = 0; i < model.layer_size(); ++i) {
    FillLayer(i, *model.mutable_layer(i));
  }
  for (auto& table : *model.mutable_sparse_table()) FillSparseTable(table);
}

void FillCheckpoint(job::CheckpointPolicy& checkpoint) {
  if (!checkpoint.has_every_steps()) {
    SET_DEFAULT(checkpoint, every_seconds, 60.0);
  }
  SET_DEFAULT(checkpoint, max_to_keep, 5);
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
    SET_DEFAULT(*strategy.mutable_min_size(), min_shard_bytes, 256 << 10);
    SET_DEFAULT(*strategy.mutable_min_size(), max_shards, 0);
  }
  if (strategy.has_max_size()) {
    SET_DEFAULT(*strategy.mutable_max_size(), max_shards, 0);
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
  SET_DEFAULT(strategy, wire_encoding, job::FLOAT32);
  SET_DEFAULT(strategy, push_share, 1.0);
}

void FillWorker(job::WorkerSettings& worker) {
  if (worker.non_finite_loss() ==
      job::WorkerSettings::NON_FINITE_LOSS_UNSPECIFIED) {
    worker.set_non_finite_loss(job::WorkerSettings::STOP);
  }
  SET_DEFAULT(worker, overlap, true);
  SET_DEFAULT(worker, shared_memory, true);
  SET_DEFAULT(worker, compute_niceness, 10);
}

}  // namespace

void FillDefaults(job::Job& job) {
  SET_DEFAULT(job, name, "job");
  SET_DEFAULT(job, seed, 0);
  if (job.has_model()) FillModel(*job.mutable_model());
  FillDatasetDefaults(job);
  if (job.has_optimizer()) FillOptimizer(*job.mutable_optimizer());
  FillCheckpoint(*job.mutable_checkpoint());
  FillParameterServer(*job.mutable_parameter_server());
  FillWorker(*job.mutable_worker());
}

void FillClusterDefaults(job::Job& job, int workers) {
  if (!job.parameter_server().has_synchronous()) return;
  job::Synchronous& mode =
      *job.mutable_parameter_server()->mutable_synchronous();
  if (!mode.has_replicas_to_aggregate()) {
    mode.set_replicas_to_aggregate(
        mode.has_total_replicas() ? std::min(workers, mode.total_replicas())
                                  : workers);
  }
  SET_DEFAULT(mode, total_replicas, mode.replicas_to_aggregate());
}

}  // namespace parasol
