#ifndef PARASOL_LOOP_PEERS_COPIED_VALUES_H_
#define PARASOL_LOOP_PEERS_COPIED_VALUES_H_

#include "absl/status/status.h"
#include "worker/store/stored_variables.h"

namespace parasol {

// Copies values, slots and numbers of updates. Both have the same variables and
// optimizers. Returns errors of StoredVariables::Read() and Write().
absl::Status CopyValues(StoredVariables& from, StoredVariables& to);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_COPIED_VALUES_H_
