#ifndef PARASOL_WORKER_LOCAL_UPDATING_MODEL_H_
#define PARASOL_WORKER_LOCAL_UPDATING_MODEL_H_

#include <memory>

#include "ml/model/model.h"
#include "worker/local/device_variables.h"

namespace parasol {

// Returns `model`, which has a device_training(), as a model that updates
// `variables` at the end of each Gradients(), where they are. The result's
// caller sees no variables, only tables: there are no values to pull and no
// gradients to push. Borrows `variables`, which are those of `model`.
std::unique_ptr<Model> UpdateOnDevice(std::unique_ptr<Model> model,
                                      DeviceVariables& variables);

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_UPDATING_MODEL_H_
