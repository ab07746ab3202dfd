#include "ml/model/pass_recordings.h"

#include <algorithm>

#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status PassRecordings::Run(const PassKey& key,
                                 const std::function<absl::Status()>& enqueue) {
  if (device_.recorder() == nullptr || gave_up_) return enqueue();
  if (device_.releases() != releases_) {
    passes_.clear();
    releases_ = device_.releases();
  }
  credit_ = std::min(credit_ + 1, kMaxCredit);
  const auto known =
      std::find_if(passes_.begin(), passes_.end(),
                   [&key](const Pass& pass) { return pass.key == key; });
  if (known == passes_.end()) {
    if (passes_.size() == kMaxPasses) passes_.erase(passes_.begin());
    passes_.push_back({.key = key, .recording = nullptr});
    return enqueue();
  }
  std::rotate(known, known + 1, passes_.end());
  Pass& pass = passes_.back();
  if (pass.recording == nullptr && !MayRecord()) return enqueue();
  const absl::Status replayed = Replay(pass, enqueue);
  if (replayed.ok()) return absl::OkStatus();
  GiveUp(replayed);
  return enqueue();
}

absl::Status PassRecordings::Replay(
    Pass& pass, const std::function<absl::Status()>& enqueue) {
  if (pass.recording == nullptr) {
    RETURN_IF_ERROR(Record(pass, enqueue));
  }
  return device_.recorder()->Replay(*pass.recording);
}

absl::Status PassRecordings::Record(
    Pass& pass, const std::function<absl::Status()>& enqueue) {
  ASSIGN_OR_RETURN(pass.recording, device_.recorder()->Record(enqueue));
  credit_ -= kPassesPerRecording;
  if (!has_recorded_) {
    LOG(INFO) << device_.name() << ": training steps are recorded and replayed";
    has_recorded_ = true;
  }
  return absl::OkStatus();
}

void PassRecordings::GiveUp(const absl::Status& why) {
  LOG(WARNING) << device_.name() << ": steps are not recorded, each kernel is "
               << "launched by itself: " << why;
  gave_up_ = true;
  passes_.clear();
}

}  // namespace parasol
