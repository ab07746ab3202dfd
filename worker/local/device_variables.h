#ifndef PARASOL_WORKER_LOCAL_DEVICE_VARIABLES_H_
#define PARASOL_WORKER_LOCAL_DEVICE_VARIABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/device_training.h"
#include "ml/optimizer/device/dense_update.h"
#include "proto/job.pb.h"
#include "worker/local/local_variables.h"

namespace parasol {

// Returns true if all that the updates of a job's variables need is on the
// device. A common norm with tables, which are on the host, is not, and neither
// is one of variables that differ in their rates or in what they are excluded
// from. Custom optimizers work on the
// host.
bool CanUpdateOnDevice(const job::Job& job);

// A lone worker's variables in the memory of the device that computes. Their
// values are the arrays that the model reads. After the same gradients they
// hold the values of HostVariables, to the bit (see DenseUpdate).
class DeviceVariables : public LocalVariables {
 public:
  // Creates the variables, without their initial values. Borrows `training`,
  // whose variables `specs` describes, and its device.
  //   InvalidArgument    the job's optimizer can't be used.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DeviceVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job,
      DeviceTraining& training, Device& device);

  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override;
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override;

  // Enqueues an update of all variables by the gradients of the pass that is
  // enqueued, clipped as the job says.
  //   Unavailable  the device was lost.
  absl::Status Update();

  // Blocks until the passes and updates that are enqueued are done.
  //   Unavailable  the device was lost.
  absl::Status Await() { return device_.Synchronize(); }

 private:
  // Variables that one optimizer updates.
  struct Group {
    std::vector<size_t> variables;
    std::unique_ptr<DenseUpdate> update;
  };

  DeviceVariables(std::vector<VariableSpec> specs, Device& device)
      : LocalVariables(std::move(specs)), device_(device) {}

  absl::Status AddArrays(absl::Span<const DeviceTraining::Variable> variables);
  // Makes a group for each optimizer. Those of variables that are trained have
  // `limits`.
  absl::Status MakeGroups(const job::Optimizer& limits,
                          absl::Span<const DeviceTraining::Variable> variables);
  absl::StatusOr<Group> MakeGroup(
      const Optimizer& optimizer, const job::Optimizer& limits,
      absl::Span<const DeviceTraining::Variable> variables);
  absl::Status Update(Group& group);

  Device& device_;
  // Addresses of all arrays of each variable. The slots are in `slots_`.
  std::vector<std::vector<float*>> arrays_;
  std::vector<Array<float>> slots_;
  Array<float> on_host_;  // room for the largest variable
  std::vector<Group> groups_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_DEVICE_VARIABLES_H_
