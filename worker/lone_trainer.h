#ifndef PARASOL_WORKER_LONE_TRAINER_H_
#define PARASOL_WORKER_LONE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/job/strategy.h"
#include "ml/device/device.h"
#include "ml/evaluation/model_evaluation.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "parameters/composition.h"
#include "proto/job.pb.h"
#include "storage/event_file.h"
#include "storage/shard_writer.h"
#include "worker/replica_threads.h"
#include "worker/step/step_source.h"
#include "worker/store/device_variables.h"
#include "worker/store/lone_shard.h"
#include "worker/store/parameter_store.h"
#include "worker/store/stored_variables.h"
#include "worker/store/table/device_tables.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// The replicas of a worker without a cluster, and the values that they train:
// one replica, or as the job's strategy says several in step. On a CUDA device
// the variables stay in its memory and are updated there; mirrored on several,
// in the memory of each. Between two calls all values are of one step. Must be
// used from one thread.
class LoneTrainer : public LoneShard {
 public:
  struct Options {
    job::Job job;  // defaults are filled in; batch_size: a replica's
    Graph graph;   // the job's model
    ProcessReplicas replicas;
    std::string data_dir;
    int threads = 1;  // CPU threads that compute, of each replica
  };
  struct Evaluated {
    ModelEvaluation::Result result;
    // Histograms of the variables and of a sample of each table's rows, if the
    // job wants them.
    EventFile::Histograms histograms;
  };

  // Opens the data and the devices, and logs which they are. References must
  // outlive the trainer.
  static absl::StatusOr<std::unique_ptr<LoneTrainer>> Open(
      Options options, Clock& clock, MetricsRegistry& metrics);

  // Reads the values of the checkpoint at this path, or makes initial ones if
  // it is empty, with the learning rate in the place of the job's. Call it
  // first. After an error call it again.
  absl::Status Load(const std::string& checkpoint,
                    std::optional<double> rate) override;
  absl::Status Save(ShardWriter& writer) const override {
    return parameters_->Save(writer);
  }
  int replicas_in_step() const override {
    return composition_.in_step ? num_replicas() : 0;
  }
  int64_t train_examples() const override { return input_->total_examples(); }
  absl::StatusOr<std::vector<int64_t>> ShardExamples() const override {
    return input_->ShardSizes(composition_.in_step ? num_replicas() : 1);
  }

  // Trains from `first_step`, the number of steps done, until `steps` has no
  // other one. Replicas in step have batches of their own, whatever it says.
  // Fails as TrainingLoop::Run() and SyncTrainingLoop::Run() do.
  absl::Status Train(int64_t first_step, StepSource& steps,
                     TrainingReporter& reporter);

  // Returns true if the job has a data set to evaluate on.
  bool CanEvaluate() const { return evaluation_ != nullptr; }
  // Evaluates the values as they are; averages of variables where there are
  // some. Training goes on without these. Fails as ModelEvaluation::Run() does.
  absl::StatusOr<Evaluated> Evaluate(absl::FunctionRef<bool()> cancelled);

  // Returns the use of cached tables since the last call, and counts it in the
  // metrics.
  DeviceTables::CacheUse TakeCacheUse();

  WorkerMetrics& metrics() { return metrics_; }
  int num_replicas() const {
    return static_cast<int>(options_.replicas.devices.size());
  }

 private:
  LoneTrainer(Options options, Clock& clock, MetricsRegistry& metrics);

  // Makes the replicas, or the device and `model_`.
  absl::Status OpenReplicas();
  // Makes `model_`, and what the composition has on the device.
  absl::Status MakeModel();
  // Returns the variables that devices have; null if they are in host memory.
  StoredVariables* VariablesOnDevice();
  // Makes the optimizers of variables on devices anew.
  absl::Status UseRate(std::optional<double> rate);
  // Returns the job with the rate that was reduced, if it was.
  job::Job JobWithRate() const;
  absl::Status TrainInStep(int64_t first_step, StepSource& steps,
                           TrainingReporter& reporter);
  // Returns the models of all replicas.
  std::vector<Model*> EvaluatingModels();
  absl::Status GiveValues(const std::vector<Model*>& models);
  absl::Status AddHistograms(EventFile::Histograms& histograms);

  const Options options_;
  Composition composition_;  // whole once the devices are open
  Clock& clock_;
  WorkerMetrics metrics_;
  std::unique_ptr<InputPipeline> input_;
  // Replicas that train in step; null: one that trains on its own.
  std::unique_ptr<ReplicaThreads> replicas_;
  // The device and model of the latter.
  std::unique_ptr<Device> device_;
  // Null if the variables are in host memory, where `parameters_` has them.
  std::unique_ptr<DeviceVariables> variables_;
  // Null if all tables are there.
  std::unique_ptr<DeviceTables> tables_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelEvaluation> evaluation_;  // null: no eval data set
  std::optional<double> rate_;  // the optimizers', if it was reduced
  std::unique_ptr<ParameterStore> parameters_;  // null before Load()
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_TRAINER_H_
