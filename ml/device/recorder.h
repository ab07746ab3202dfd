#ifndef PARASOL_ML_DEVICE_RECORDER_H_
#define PARASOL_ML_DEVICE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace parasol {

// Keeps the work that was enqueued on a device's compute stream, and on streams
// that were ordered behind it, so that one call can enqueue all of it again. A
// replay runs the same kernels and copies with the same arguments, and so reads
// the values that the arrays hold by then. Not thread-safe, like its device.
class Recorder {
 public:
  // Recorded work. Must not outlive its device.
  class Recording {
   public:
    virtual ~Recording() = default;
  };

  virtual ~Recorder() = default;

  // Calls `enqueue` once and keeps the work that it enqueues without doing it.
  // `enqueue` must have run before without a recorder, so that all that is
  // allocated the first time exists: while it is recorded it may not allocate,
  // wait, or order the compute stream behind another one.
  //   any error  nothing was enqueued; the caller may call `enqueue` itself.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(
      const std::function<absl::Status()>& enqueue) = 0;

  // Enqueues `recording` behind the work that is on the compute stream now.
  // Events that were recorded in it are recorded anew. Must not be called once
  // Device::releases() has changed, because the recording may name memory that
  // was freed.
  //   any error  nothing was enqueued.
  virtual absl::Status Replay(Recording& recording) = 0;

  // Returns the number of replays that were enqueued.
  virtual int64_t replayed() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_RECORDER_H_
