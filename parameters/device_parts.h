#ifndef PARASOL_PARAMETERS_DEVICE_PARTS_H_
#define PARASOL_PARAMETERS_DEVICE_PARTS_H_

#include "parameters/training_parameters.h"

namespace parasol {

// A replica's part of a step whose gradients of variables stay in the memory of
// its device.
struct DevicePart {
  // False if the replica has no examples in the step: its gradients are 0,
  // whatever is in that memory.
  bool has_examples = true;
  // Factor of the gradients.
  float weight = 1;
  // Index of the device in this process.
  int device = 0;
};

// The other side of TrainingParameters for gradients that never reach the host:
// they are added where they are. A replica says with Expect() that a pass is
// about to compute them, and pushes to the TrainingParameters what else it has,
// without any variable, when the pass is enqueued. Thread-safe.
class DeviceParts {
 public:
  virtual ~DeviceParts() = default;

  // Says whose gradients the next pass on the device of `part` computes. Does
  // not begin the pass. They may leave before the push, while the pass goes on,
  // and count once the replica has pushed.
  virtual void Expect(const TrainingParameters::SyncStep& step,
                      const DevicePart& part) = 0;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_DEVICE_PARTS_H_
