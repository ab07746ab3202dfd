#ifndef PARASOL_SERVING_VERSION_STATE_H_
#define PARASOL_SERVING_VERSION_STATE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace parasol {

// The state of one version of a served model: of the checkpoint of a step.
struct VersionState {
  int64_t version = 0;
  // True if requests are answered with it.
  bool is_served = false;
  // The reason why it is not; OK while it is being loaded.
  absl::Status refused = {};
};

}  // namespace parasol

#endif  // PARASOL_SERVING_VERSION_STATE_H_
