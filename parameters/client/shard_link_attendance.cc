// The parts of a link that a thread attends to now and then, and that show what
// it does.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "cluster/rpc/channel.h"
#include "parameters/client/shard_link.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogPeriod = absl::Seconds(10);
constexpr absl::Duration kAttendPeriod = absl::Seconds(1);

}  // namespace

void ShardLink::Trace(size_t lane, const Answered& answered,
                      absl::Time now) const {
  const std::string track =
      absl::StrCat("to ", options_.name, ", stream ", lane);
  for (const auto& [operation, sent] : answered.sent) {
    const bool is_push = operation->call().is_push;
    options_.trace->Add(
        {.name = operation->asked.is_dense() ? (is_push ? "push" : "pull")
                 : is_push                   ? "push rows"
                                             : "pull rows",
         .track = track,
         .begin = sent,
         .end = now,
         .bytes = static_cast<int64_t>(is_push ? operation->payload_bytes
                                               : AnswerBytes(*operation))});
  }
}

// Leaves alone a stream that has a lane, and one that has asked for a lane and
// was given none.
void ShardLink::AttendLanes(absl::Time now) {
  const auto can_begin_anew = [](const Lane& lane) {
    return lane.brings_answers && !lane.refused &&
           !lane.stream->asks_for_lane();
  };
  const bool works =
      std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
        return lane.brings_answers && lane.stream->uses_lane();
      });
  if (works) lane_retry_.NoteSuccess();
  const bool is_due = lane_retry_.IsDue(now) &&
                      std::any_of(lanes_.begin(), lanes_.end(), can_begin_anew);
  if (is_due) {
    LOG(INFO) << Peer() << " is asked for payload lanes again";
    lane_retry_.Begin();
    offers_.lane_failures = 0;
    offers_.lane = true;
  }
  if (!offers_.lane || !(works || is_due)) return;
  for (Lane& lane : lanes_) {
    if (!can_begin_anew(lane)) continue;
    lane.refused = true;
    lane.stream->Cancel();
    if (!works) return;
  }
}

void ShardLink::DropStreams() {
  for (Lane& lane : lanes_) {
    lane.channel = nullptr;
    lane.failures = 0;
    lane.retry_at = absl::InfinitePast();
    if (lane.stream != nullptr) lane.stream->Cancel();
  }
}

absl::Time ShardLink::Attend() {
  const absl::Time now = clock_.Now();
  absl::Time next = now + kAttendPeriod;
  std::vector<std::shared_ptr<ShardStream>> streams;
  Departures departures;
  ShardOutbox::Message late;
  absl::Status why;
  {
    absl::MutexLock lock(&mu_);
    if (stopped_) return next;
    AttendLanes(now);
    if (outbox_.owed() == 0) return next;
    if (now - std::max(waiting_since_, loading_at_) >= options_.timeout) {
      why = absl::UnavailableError(
          absl::StrCat(Peer(), " has not answered for ",
                       absl::FormatDuration(now - waiting_since_), Trouble()));
      late = outbox_.TakeAll();
      DropStreams();
      SetNamed(false);
    } else {
      NameIfLate(now);
      streams = MakeStreams(now);
      departures = TakeDepartures();
      for (size_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i].stream != nullptr || !outbox_.HasWaiting(i)) continue;
        next = std::min(next, lanes_[i].retry_at);
      }
    }
  }
  for (const ShardOutbox::Entry& entry : late) {
    entry.operation->call().completion.Finish(why);
  }
  for (const auto& stream : streams) stream->Start();
  Write(departures);
  return next;
}

void ShardLink::NameIfLate(absl::Time now) {
  const absl::Duration waited = now - waiting_since_;
  if (waited < kLogPeriod) return;
  for (Lane& lane : lanes_) {
    if (lane.channel != nullptr) ReconnectNow(*lane.channel);
  }
  if (named_ && now < next_log_) return;
  SetNamed(true);
  next_log_ = now + kLogPeriod;
  LOG(WARNING) << "waiting for " << Peer() << ": " << outbox_.owed()
               << " operations without an answer for "
               << absl::FormatDuration(waited) << Trouble();
}

void ShardLink::SetNamed(bool named) {
  if (named_ == named) return;
  named_ = named;
  metrics_.shards_waiting.Add(named ? 1 : -1);
}

std::vector<TrainingParameters::PeerWait> WaitsOf(
    absl::Span<const std::unique_ptr<ShardLink>> links) {
  std::vector<TrainingParameters::PeerWait> waits;
  for (const auto& link : links) {
    waits.push_back(link->Wait());
    waits.back().shard = static_cast<int>(waits.size()) - 1;
  }
  return waits;
}

}  // namespace parasol
