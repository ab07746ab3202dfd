#ifndef PARASOL_ML_DEVICE_RECORDER_H_
#define PARASOL_ML_DEVICE_RECORDER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace parasol {

// Keeps what was enqueued on a device's compute stream, and on streams that
// were ordered behind it, to enqueue all of it again in one call: kernels and
// copies with the same arguments, so with what their arrays then hold. As its
// device, not thread-safe.
class Recorder {
 public:
  // Must not outlive its device.
  class Recording {
   public:
    virtual ~Recording() = default;
  };

  virtual ~Recorder() = default;

  // Calls `enqueue` once and keeps what it enqueues, of which nothing is done
  // yet. It must have been carried out before, without a recorder, so that
  // whatever is made at the first time is there: here it may not allocate,
  // wait, or order the compute stream behind another one.
  //   any error  nothing was enqueued, and `enqueue` may be called plainly.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(
      const std::function<absl::Status()>& enqueue) = 0;

  // Enqueues it, behind what is on the compute stream now. Events that were
  // recorded in it are recorded anew. Not once Device::releases() has changed:
  // it may name memory that is gone.
  //   any error  nothing was enqueued.
  virtual absl::Status Replay(Recording& recording) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_RECORDER_H_
