#ifndef PARASOL_WORKER_STORE_DEVICE_VARIABLES_H_
#define PARASOL_WORKER_STORE_DEVICE_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/device_training.h"
#include "ml/optimizer/device/dense_update.h"
#include "proto/job.pb.h"
#include "worker/store/stored_variables.h"

namespace parasol {

// A worker's variables in the memory of the device that computes, or a copy of
// them on each of several devices. Their values are the arrays that the
// models read. After the same gradients they hold the values of HostVariables,
// to the bit (see DenseUpdate).
class DeviceVariables : public StoredVariables {
 public:
  // A model that has the values of one copy, and its device.
  struct Place {
    DeviceTraining* training = nullptr;
    Device* device = nullptr;
    // Held by Read() and Write() while they use the device, and by the caller
    // of Update(); null: the caller sees to it.
    absl::Mutex* mutex = nullptr;
  };

  // Creates the variables, without their initial values. Borrows `training`,
  // whose variables `specs` describes, and its device.
  //   InvalidArgument    the job's optimizer can't be used.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DeviceVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job,
      DeviceTraining& training, Device& device) {
    return Create(std::move(specs), job, {{&training, &device}});
  }
  // Creates a copy at each place, of which there is at least one. Read() reads
  // the first copy, and Write() writes all. Borrows what the places name.
  // Errors are those above.
  static absl::StatusOr<std::unique_ptr<DeviceVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job,
      const std::vector<Place>& places);

  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override;
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override;

  // Enqueues an update of all variables, on each device by the gradients of the
  // pass that is enqueued there, clipped as the job says. The copies stay equal
  // if their gradients are.
  //   Unavailable  a device was lost.
  absl::Status Update();

  // Blocks until the passes and updates that are enqueued are done.
  //   Unavailable  a device was lost.
  absl::Status Await();

 private:
  // All arrays in the memory of one device.
  struct Copy {
    Device* device = nullptr;
    absl::Mutex* mutex = nullptr;
    std::vector<DeviceTraining::Variable> of_model;
    // Addresses of all arrays of each variable. The slots are in `slots`.
    std::vector<std::vector<float*>> arrays = {};
    std::vector<Array<float>> slots = {};
    Array<float> on_host = {};  // room for the largest variable
    std::vector<std::unique_ptr<DenseUpdate>> updates = {};  // one for a group
  };
  // Variables that one optimizer updates.
  using Group = std::vector<size_t>;

  explicit DeviceVariables(std::vector<VariableSpec> specs)
      : StoredVariables(std::move(specs)) {}

  // Divides the variables into groups, one for each optimizer.
  void MakeGroups();
  absl::Status AddCopy(const job::Job& job, const Place& place);
  absl::Status AddArrays(Copy& copy);
  // Makes the updates of a group. Variables that are trained have `limits`.
  absl::Status AddUpdate(const Group& group, const job::Optimizer& limits,
                         Copy& copy);
  absl::Status Write(Copy& copy, size_t variable, int array,
                     absl::Span<const float> elements);
  absl::Status Update(size_t group);

  std::vector<Group> groups_;
  std::vector<Copy> copies_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_DEVICE_VARIABLES_H_
