#ifndef PARASOL_WORKER_STORE_UPDATING_MODEL_H_
#define PARASOL_WORKER_STORE_UPDATING_MODEL_H_

#include <memory>

#include "ml/model/model.h"
#include "worker/store/device_variables.h"
#include "worker/store/table/device_tables.h"

namespace parasol {

// Returns `model`, which has a device_training(), as a model that updates
// `variables`, and the tables that `tables` has on the device, at the end of
// each Gradients(), where they are. The result's caller sees no variables, and
// only the rows of tables that are on the host: there is nothing else to pull
// and to push.
//
// When a batch or its pass finds the device full, the reserve of `tables` is
// given up, then their largest table gives memory back, again and again, or
// goes to the host, and it is tried again: a pass may read more rows on the
// host than its caller was shown, and gives their gradients to
// GradientSinks::rows.
//
// Borrows `variables` and `tables`, which belong to `model`; `tables` is null
// if all are on the host.
std::unique_ptr<Model> UpdateOnDevice(std::unique_ptr<Model> model,
                                      DeviceVariables& variables,
                                      DeviceTables* tables = nullptr);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_UPDATING_MODEL_H_
