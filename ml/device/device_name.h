#ifndef PARASOL_ML_DEVICE_DEVICE_NAME_H_
#define PARASOL_ML_DEVICE_DEVICE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The name of a device of this machine. The processor is one device; cpu:1 and
// following are logical devices of the same one, for replicas.
struct DeviceName {
  bool is_cuda = false;
  int index = 0;

  // Returns "cpu:0" or "cuda:1".
  std::string ToString() const;
};

// Reads a device's name in Parasol's form ("cuda:0", "cpu") or TensorFlow's
// ("/gpu:0", "GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"). A name
// without a number means device 0.
//   InvalidArgument  `name` is no device's name, or one of another machine's
//                    job, replica or task; leaves the name to the caller.
absl::StatusOr<DeviceName> ParseDeviceName(absl::string_view name);

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DEVICE_NAME_H_
