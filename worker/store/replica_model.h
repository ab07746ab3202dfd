#ifndef PARASOL_WORKER_STORE_REPLICA_MODEL_H_
#define PARASOL_WORKER_STORE_REPLICA_MODEL_H_

#include <memory>

#include "ml/device/device.h"
#include "ml/model/model.h"

namespace parasol {

// Returns `model`, which has a device_training() and no tables, as a model
// whose values and gradients stay in the memory of its device. Gradients()
// calls no sink and leaves the gradients there, where the caller sums them with
// other replicas' gradients and updates the variables, behind the pass. So the
// caller sees no variables: there is nothing to pull and to push. Borrows
// `device`, the model's.
std::unique_ptr<Model> KeepOnDevice(std::unique_ptr<Model> model,
                                    Device& device);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_REPLICA_MODEL_H_
