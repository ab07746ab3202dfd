#ifndef PARASOL_WORKER_OPENED_JOB_H_
#define PARASOL_WORKER_OPENED_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/progress/curve_points.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"
#include "worker/step/training_files.h"
#include "worker/worker_device.h"

namespace parasol {

// The job that a worker of a cluster trains, with all that the worker itself
// has for it: the devices with their models, and the training data. Used by one
// thread.
class OpenedJob {
 public:
  struct Options {
    std::string data_dir;
    std::string device = "auto";  // --device
    int threads = 1;              // CPU threads of each device
    // Number of workers of the cluster. They share the files of a data set that
    // is split by file.
    int workers = 1;
    // True if the job's steps have a gradient of every replica.
    bool is_in_step = false;
    // Asked by the thread that trains; true ends a step that has several passes
    // with Cancelled.
    std::function<bool()> cancelled = [] { return false; };
  };

  // Opens `job`. Calls `check` before anything is opened, and returns its
  // errors, and the errors of CheckLossCode(), OpenWorkerDevices(),
  // InputPipeline::Open() and TrainingEnd::ObserveExamples(). Call it once.
  //   Unavailable  the folder of a set that grows is not there now.
  absl::Status Open(const job::Job& job, const Options& options,
                    const std::function<absl::Status(const Graph&)>& check);

  // Returns true if the data are open: what fails then is not the worker's
  // configuration.
  bool has_data() const { return input_ != nullptr; }

  // Valid after Open().
  const job::Job& job() const { return job_; }
  std::vector<WorkerDevice>& devices() { return devices_; }
  InputPipeline& input() { return *input_; }
  // Number of examples of each shard of the training set, as in
  // ClaimStepsRequest.
  const std::vector<int64_t>& shard_examples() const { return shard_examples_; }
  const CurvePoints& points() const { return points_; }
  // Files of a training set that grows; null: it does not.
  TrainingFiles* files() { return files_.get(); }

 private:
  // Opens a training set that grows. Its files are yet to be named.
  absl::Status Follow(const Options& options, ModelInputs inputs);

  job::Job job_;
  std::vector<WorkerDevice> devices_;
  std::unique_ptr<TrainingFiles> files_;
  std::unique_ptr<InputPipeline> input_;
  std::vector<int64_t> shard_examples_;
  CurvePoints points_;
};

// Returns the number of shards of a job's training set: one for each replica of
// a step, or for each of `workers` workers if it is split by file, or one.
int CountInputShards(const job::Job& job, bool is_in_step, int workers);

}  // namespace parasol

#endif  // PARASOL_WORKER_OPENED_JOB_H_
