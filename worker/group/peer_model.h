#ifndef PARASOL_WORKER_GROUP_PEER_MODEL_H_
#define PARASOL_WORKER_GROUP_PEER_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/model/model.h"
#include "worker/group/device_gradients.h"

namespace parasol {

// Returns `model`, which has a device_training(), as a model whose variables'
// gradients stay in the memory of its device, where `gradients` finds them, and
// whose values come from the host as ever, or with `values_stay` stay there
// too: HostValue() and Upload() are not called then. Gradients() calls only the
// sink of rows. Borrows `gradients`, of the same model and device.
//   ResourceExhausted  the host has no memory for the values.
absl::StatusOr<std::unique_ptr<Model>> KeepGradientsOnDevice(
    std::unique_ptr<Model> model, DeviceGradients& gradients,
    bool values_stay = false);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_PEER_MODEL_H_
