// Trains a job's model by a training loop of a program, which does what a
// worker does with the job: tests/benchmark/custom_loop/compare measures both.

#include <cstdint>
#include <map>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "cluster/job/job_file.h"
#include "loop/loop.h"
#include "proto/job.pb.h"

ABSL_FLAG(std::string, job, "", "The job file.");
ABSL_FLAG(std::string, data_dir, ".", "Directory of its data.");
ABSL_FLAG(int64_t, steps, 100, "Number of steps.");
ABSL_FLAG(int64_t, table_rows, 0, "Number of rows of each sparse table.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

absl::StatusOr<Dataset> TrainingData(const job::Job& job, bool has_classes) {
  job::Model inputs;
  *inputs.mutable_input_shape() = job.model().input_shape();
  *inputs.mutable_input() = job.model().input();
  return FromFiles({.dataset = job.train().ShortDebugString(),
                    .inputs = inputs.ShortDebugString(),
                    .label = has_classes ? FileData::Label::kClass
                                         : FileData::Label::kNumbers,
                    .data_dir = absl::GetFlag(FLAGS_data_dir)});
}

absl::Status Train(Strategy& strategy) {
  const std::string path = absl::GetFlag(FLAGS_job);
  ASSIGN_OR_RETURN(const std::string text, ReadJobFile(path));
  ASSIGN_OR_RETURN(const job::Job job, ParseJob(text, path));
  const int64_t batch = job.train().batch_size();
  const bool has_classes =
      job.model().loss().has_sparse_categorical_crossentropy();
  ASSIGN_OR_RETURN(const Dataset data, TrainingData(job, has_classes));

  ModelOptions options;
  for (const job::SparseTable& table : job.model().sparse_table()) {
    options.table_rows[table.name()] = absl::GetFlag(FLAGS_table_rows);
  }
  ASSIGN_OR_RETURN(const loop::Model model,
                   loop::Model::Create("model", job.model(), options));
  ASSIGN_OR_RETURN(const auto optimizer,
                   loop::Optimizer::Create("optimizer", job.optimizer(),
                                           model.trainable_variables()));

  const auto step = [&](ReplicaContext&,
                        const loop::Batch& piece) -> absl::StatusOr<Tensor> {
    GradientTape tape;
    const auto inputs =
        absl::MakeConstSpan(piece.tensors).first(piece.tensors.size() - 1);
    const Tensor outputs = model.Call(inputs, {.training = true});
    const Tensor& labels = piece.tensors.back();
    const Tensor losses = has_classes
                              ? SparseCategoricalCrossentropy(labels, outputs)
                              : BinaryCrossentropy(labels, outputs);
    const Tensor loss = ComputeAverageLoss(losses, batch);
    RETURN_IF_ERROR(optimizer.Minimize(loss, tape));
    return loss;
  };
  const DistributedDataset batches = strategy.DistributeDataset(data.Repeat());
  auto next = batches.begin();
  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_steps)});
  while (training.Next()) {
    const Tensor loss = strategy.Reduce(kSum, strategy.Run(step, next.Next()));
    training.Report(batch, loss.scalar());
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a job's model by a loop of its own.");
  return program.Run(Train);
}
