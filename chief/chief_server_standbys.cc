// The part of the chief's server that records shards' standbys, and has them
// act for lost ps.
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "chief/chief_server.h"
#include "coordinator/shards/standby_board.h"

namespace parasol {
namespace {

constexpr absl::Duration kRecordLog = absl::Seconds(10);
// Time that a heartbeat waits for another one's record, and between two records
// of which the first has failed.
constexpr absl::Duration kRecordWait = absl::Seconds(3);
constexpr absl::Duration kRecordPause = absl::Milliseconds(100);

}  // namespace

absl::Status ChiefServer::RecordStandbys() {
  std::optional<StandbyBoard::Kept> kept;
  {
    absl::MutexLock lock(&mu_);
    // One call at a time waits for the disk, and no other one for long.
    const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !is_recording_;
    };
    if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_free), kRecordWait) ||
        clock_.Now() < next_record_) {
      return absl::UnavailableError(
          "the standbys of shards can't be recorded now");
    }
    kept = coordinator_.standbys().ToRecord();
    if (!kept) return absl::OkStatus();
    is_recording_ = true;
  }
  const absl::Status recorded = executor_->RecordStandbys(*kept);
  if (!recorded.ok()) {
    LOG_EVERY(WARNING, kRecordLog)
        << "can't record the standbys of shards, whose pushes may wait for it: "
        << recorded.message();
  }
  absl::MutexLock lock(&mu_);
  is_recording_ = false;
  if (recorded.ok()) {
    coordinator_.standbys().Recorded(*kept);
  } else {
    next_record_ = clock_.Now() + kRecordPause;
  }
  return recorded;
}

void ChiefServer::NoteGone(const Coordinator::Suspect& suspect) {
  {
    absl::MutexLock lock(&mu_);
    if (!coordinator_.NoteGone(suspect, clock_.Now())) return;
    Changed();
  }
  Tell(absl::StrCat("lost ps/", suspect.ps_index, ": nobody listens at ",
                    suspect.address),
       /*is_warning=*/true);
}

}  // namespace parasol
