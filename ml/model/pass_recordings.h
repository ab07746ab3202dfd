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

// The properties that two passes of one model must share to enqueue the same
// work, as long as no memory is given back between them.
struct PassKey {
  static constexpr int kNoHostGradients = -1;

  int64_t examples = 0;
  // VariableMemory::gradient_side(), or kNoHostGradients if gradients stay on
  // the device.
  int gradient_side = 0;
  std::vector<const void*> arrays;  // StagedInputs::ListArrays()

  friend bool operator==(const PassKey&, const PassKey&) = default;
};

// Enqueues passes. The first pass of a key is enqueued plainly, the second one
// is recorded, and it and all later ones are replayed. Without a recorder, or
// once it has failed, all passes are plain. A line in the log says that passes
// are recorded, or why they are not. Not thread-safe.
class PassRecordings {
 public:
  // Number of recordings that are kept, the ones used last: two batches, two
  // sides of the gradients, an epoch's last batch, and as many again.
  static constexpr size_t kMaxPasses = 8;
  // Passes for each recording, on the average beyond the first kMaxPasses ones.
  // To record takes the host as long as a few plain passes: where keys or
  // memory change so often that recordings are hardly replayed, that costs
  // little more than to launch each kernel.
  static constexpr int kPassesPerRecording = 16;

  // Borrows `device`.
  explicit PassRecordings(Device& device) : device_(device) {}

  // Enqueues a pass by calling `enqueue` or by a replay of its work. `enqueue`
  // is kept, so it must stay valid as long as this object. Errors as for a
  // plain pass; a recorder's errors are never returned.
  absl::Status Run(const PassKey& key,
                   const std::function<absl::Status()>& enqueue);

 private:
  static constexpr int kMaxCredit = kMaxPasses * kPassesPerRecording;

  struct Pass {
    PassKey key;
    std::unique_ptr<Recorder::Recording> recording;  // null: not recorded yet
  };

  bool MayRecord() const { return credit_ >= kPassesPerRecording; }
  absl::Status Replay(Pass& pass, const std::function<absl::Status()>& enqueue);
  absl::Status Record(Pass& pass, const std::function<absl::Status()>& enqueue);
  void GiveUp(const absl::Status& why);

  Device& device_;
  bool gave_up_ = false;
  bool has_recorded_ = false;
  // A pass adds 1, a recording takes kPassesPerRecording.
  int credit_ = kMaxCredit;
  uint64_t releases_ = 0;     // Device::releases() when `passes_` began
  std::vector<Pass> passes_;  // the pass used last comes last
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_RECORDINGS_H_
