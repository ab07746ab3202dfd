#ifndef PARASOL_WORKER_LOCAL_TRAINING_H_
#define PARASOL_WORKER_LOCAL_TRAINING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "ml/device/device.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/local_parameters.h"
#include "worker/training_loop.h"

namespace parasol {

// Trains a job in one process: the worker's mode when TF_CONFIG is not set. The
// training loop, optimizers and checkpoints are those of a cluster.
class LocalTraining {
 public:
  struct Options {
    job::Job job;  // defaults are filled in
    Graph graph;   // the job's model
    std::string data_dir;
    std::string device = "auto";
    int threads = 1;  // CPU threads that compute
  };

  LocalTraining(Options options, Clock& clock, MetricsRegistry& metrics);

  // Resumes from the newest intact checkpoint of the job's directory, trains to
  // the job's end, evaluates, and logs the result.
  //   Cancelled  Stop() was called; a checkpoint of the last step is written.
  //   any other  as in a cluster.
  absl::Status Run();

  // Ends Run() after the step that is being computed. May be called from any
  // thread.
  void Stop() { stopping_ = true; }

 private:
  absl::Status Prepare();
  absl::Status Resume();
  absl::Status TrainTo(int64_t end, int64_t checkpoint_every);
  absl::Status WriteCheckpoint(bool final);
  absl::Status Evaluate();
  int64_t EndStep() const;

  const Options options_;
  Clock& clock_;
  WorkerMetrics metrics_;
  std::atomic<bool> stopping_{false};

  std::string run_id_;
  int64_t step_ = 0;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<InputPipeline> input_;
  std::unique_ptr<LocalParameters> parameters_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_TRAINING_H_
