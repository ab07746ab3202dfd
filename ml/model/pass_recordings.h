#ifndef PARASOL_ML_MODEL_PASS_RECORDINGS_H_
#define PARASOL_ML_MODEL_PASS_RECORDINGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/recorder.h"

namespace parasol {

// What two passes of one model must have in common to enqueue the same work, as
// long as no memory is given back between them.
struct PassKey {
  int64_t examples = 0;
  int gradient_side = 0;             // VariableMemory::gradient_side()
  std::vector<const float*> arrays;  // StagedInputs::ListArrays()

  friend bool operator==(const PassKey&, const PassKey&) = default;
};

// Enqueues passes: the first one of a key plainly, the second one is recorded,
// and it and those behind it are replayed. Where there is no recorder, or once
// it has failed, all are plain. Not thread-safe.
class PassRecordings {
 public:
  // Of them the last ones used are kept: two batches, two sides of the
  // gradients, an epoch's last batch, and as many again.
  static constexpr size_t kMaxPasses = 8;

  // Borrows `device`.
  explicit PassRecordings(Device& device) : device_(device) {}

  // `enqueue` enqueues the pass; it is kept, so it must work as long as this
  // does. The error is that of a plain pass: none is lost to the recorder.
  absl::Status Run(const PassKey& key,
                   const std::function<absl::Status()>& enqueue);

 private:
  struct Pass {
    PassKey key;
    std::unique_ptr<Recorder::Recording> recording;  // null: not yet
  };

  absl::Status Replay(Pass& pass, const std::function<absl::Status()>& enqueue);
  void GiveUp(const absl::Status& why);

  Device& device_;
  bool gave_up_ = false;
  uint64_t releases_ = 0;     // of the device, when `passes_` began
  std::vector<Pass> passes_;  // the one that was used last behind
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_RECORDINGS_H_
