#ifndef PARASOL_WORKER_STORE_MIRRORED_VARIABLES_H_
#define PARASOL_WORKER_STORE_MIRRORED_VARIABLES_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device_group.h"
#include "ml/layer/variable_spec.h"
#include "parameters/device_parts.h"
#include "proto/job.pb.h"
#include "worker/store/device_variables.h"
#include "worker/store/gradient_means.h"

namespace parasol {

// The variables of replicas in step, of which each replica's device has a copy,
// values and slots. The devices exchange gradients, and each makes every
// update: all copies have the same bits. Not thread-safe.
class MirroredVariables {
 public:
  using Way = GradientMeans::Way;

  // Creates the copies, without initial values. `specs` describes the variables
  // of each place, whose devices are all CUDA devices, or none is. Borrows what
  // the places name.
  //   InvalidArgument     the job's optimizer can't be used.
  //   ResourceExhausted   a device is full.
  //   FailedPrecondition  NCCL is to add, and is not on this machine.
  //   Unavailable         a device was lost, or NCCL does not start.
  static absl::StatusOr<std::unique_ptr<MirroredVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job,
      std::vector<DeviceVariables::Place> places, Way way);
  // Waits for what the devices do with memory of each other.
  ~MirroredVariables();

  // Makes the copies anew, without initial values, with the optimizers of
  // `job`: what variables() has returned before is gone. Returns errors of
  // Create().
  absl::Status UseOptimizers(const job::Job& job);

  // Returns all copies. What is read is read from device 0.
  DeviceVariables& variables() { return *variables_; }

  // Enqueues on all devices an update by the mean of the replicas' gradients,
  // behind their passes; parts[i] is replica i's.
  //   Unavailable  a device was lost, or NCCL failed.
  absl::Status Update(absl::Span<const DevicePart> parts);

 private:
  MirroredVariables(std::vector<VariableSpec> specs,
                    std::vector<DeviceVariables::Place> places)
      : specs_(std::move(specs)), places_(std::move(places)) {}

  const std::vector<VariableSpec> specs_;
  const std::vector<DeviceVariables::Place> places_;
  std::unique_ptr<DeviceGroup> group_;
  std::unique_ptr<GradientMeans> means_;
  std::unique_ptr<DeviceVariables> variables_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_MIRRORED_VARIABLES_H_
