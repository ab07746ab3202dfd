#include "ps/standby/standby_keeper.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ps/journal/standby_feed.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/shard_state.h"

namespace parasol {
namespace {

// Between reports: as a rule, while pushes wait for an answer,
// and while there is no standby, whose place may be told.
constexpr absl::Duration kReportInterval = absl::Seconds(1);
constexpr absl::Duration kUrgentInterval = absl::Milliseconds(20);
constexpr absl::Duration kPlaceInterval = absl::Milliseconds(100);
constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr size_t kWriteBytes = 1 << 20;
// Longest time that the standby takes to load the state.
constexpr absl::Duration kLoadLimit = absl::Minutes(10);

// The code that nothing else has here.
absl::Status CallEnded() { return absl::UnknownError("the stream ended"); }

}  // namespace

StandbyKeeper::StandbyKeeper(Options options, StandbyClient& client,
                             Clock& clock, PsMetrics& metrics)
    : options_(std::move(options)),
      client_(client),
      clock_(clock),
      metrics_(metrics) {}

void StandbyKeeper::Start() {
  absl::MutexLock lock(&threads_mu_);
  reports_ = std::thread([this] { RunReports(); });
  streams_ = std::thread([this] { RunStreams(); });
}

void StandbyKeeper::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    if (call_ != nullptr) call_->Cancel();
  }
  absl::MutexLock lock(&threads_mu_);
  if (reports_.joinable()) reports_.join();
  if (streams_.joinable()) streams_.join();
}

void StandbyKeeper::UseRule() {
  has_report_ |= duty_.IsUrgent();
  has_work_ = true;
  metrics_.standby_in_sync.Set(duty_.IsInSync() ? 1 : 0);
  if (primary_.shard == nullptr) return;
  primary_.shard->feed()->SetRule(duty_.rule());
}

void StandbyKeeper::Release() {
  std::shared_ptr<ParameterShard> shard;
  {
    absl::MutexLock lock(&mu_);
    shard = primary_.shard;
  }
  if (shard != nullptr) shard->feed()->Release();
}

void StandbyKeeper::Loaded(const std::shared_ptr<ParameterShard>& shard,
                           const wire::LoadRequest& order, bool is_new) {
  absl::MutexLock lock(&mu_);
  if (call_ != nullptr && primary_.shard != shard) call_->Cancel();
  primary_ = {.shard = shard, .order = order};
  if (shard == nullptr) {
    duty_.LetGo();
  } else {
    duty_.Loaded(is_new, order.standby().number());
  }
  urgent_since_ = clock_.Now();
  UseRule();
}

void StandbyKeeper::RunReports() {
  while (true) {
    bool is_urgent;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_stopping_ || has_report_;
      };
      clock_.AwaitWithTimeout(
          mu_, absl::Condition(&has_work),
          duty_.HasNone() ? kPlaceInterval : kReportInterval);
      if (is_stopping_) return;
      EndStalledCall();
      has_report_ = false;
      if (primary_.shard == nullptr) continue;
    }
    Report();
    {
      absl::MutexLock lock(&mu_);
      is_urgent = duty_.IsUrgent() && !is_stopping_;
      has_report_ |= is_urgent;
      if (!is_urgent) urgent_since_ = absl::InfiniteFuture();
      if (is_urgent && clock_.Now() - urgent_since_ > kLogInterval) {
        LOG_EVERY(WARNING, kLogInterval)
            << "pushes are not acknowledged: the chief has yet to keep what "
               "this shard's standby is";
      }
    }
    if (is_urgent) clock_.Pause(kUrgentInterval);
  }
}

void StandbyKeeper::EndStalledCall() {
  if (call_ == nullptr || clock_.Now() - writing_since_ < Patience()) return;
  LOG(WARNING) << "the ps of this shard's standby has read nothing for "
               << absl::FormatDuration(Patience());
  call_->Cancel();
}

absl::Duration StandbyKeeper::Patience() const {
  return is_loading_ ? kLoadLimit : kStall;
}

bool StandbyKeeper::Write(StandbyCall& call,
                          absl::Span<const FollowMessage> messages) {
  {
    absl::MutexLock lock(&mu_);
    writing_since_ = clock_.Now();
  }
  const bool is_written = call.Write(messages);
  absl::MutexLock lock(&mu_);
  writing_since_ = absl::InfiniteFuture();
  return is_written;
}

void StandbyKeeper::Report() {
  wire::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    duty_.Report(request, clock_.Now());
  }
  const absl::StatusOr<wire::HeartbeatResponse> answer =
      options_.heartbeat(std::move(request));
  if (!answer.ok()) return;
  {
    absl::MutexLock lock(&mu_);
    // A chief that was replaced keeps nothing.
    if (answer->chief_epoch() < chief_epoch_) return;
    chief_epoch_ = answer->chief_epoch();
    const bool was_in_sync = duty_.IsInSync();
    duty_.Hear(*answer);
    if (duty_.IsInSync() && !was_in_sync) {
      LOG(INFO) << "the standby of this shard is in sync";
    }
    UseRule();
    has_report_ = false;
    // It may be waiting for a ps that stands still.
    if (call_ != nullptr && duty_.IsMisplaced()) call_->Cancel();
  }
  Release();
}

void StandbyKeeper::RunStreams() {
  while (true) {
    std::optional<wire::StandbyPlace> place;
    Primary primary;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_stopping_ || has_work_;
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_work), kLook);
      if (is_stopping_) return;
      has_work_ = false;
      place = duty_.ToMake(clock_.Now());
      primary = primary_;
      if (place) duty_.Making(*place, clock_.Now());
    }
    if (place) Follow(primary, *place);
  }
}

class StandbyKeeper::Answers : public StandbyCall::Observer {
 public:
  Answers(StandbyKeeper& keeper, const Primary& primary)
      : keeper_(keeper), primary_(primary) {}

  void OnAnswer(const wire::FollowResponse& answer) override {
    const absl::Status heard = keeper_.Hear(primary_, answer);
    if (heard.ok()) return;
    LOG(ERROR) << heard.message();
    absl::MutexLock lock(&keeper_.mu_);
    if (keeper_.call_ != nullptr) keeper_.call_->Cancel();
  }
  void OnEnd() override {
    absl::MutexLock lock(&keeper_.mu_);
    keeper_.has_ended_ = true;
  }

 private:
  StandbyKeeper& keeper_;
  const Primary& primary_;
};

void StandbyKeeper::Follow(const Primary& primary,
                           const wire::StandbyPlace& place) {
  Answers answers(*this, primary);
  const std::unique_ptr<StandbyCall> call = client_.Follow(place, answers);
  {
    absl::MutexLock lock(&mu_);
    call_ = call.get();
    has_ended_ = false;
    is_loading_ = false;
    // Nobody could cancel it before.
    if (is_stopping_ || primary_.shard != primary.shard) call->Cancel();
  }
  const absl::Status ended = Send(primary, place, *call);
  // One that has ended says why.
  if (!absl::IsUnknown(ended)) call->Cancel();
  bool counted = false;
  {
    // One step: a report that is answered in between would have pushes rely on
    // a stream that has ended.
    absl::MutexLock lock(&mu_);
    primary.shard->feed()->End();
    metrics_.standby_records_behind.Set(0);
    call_ = nullptr;
    if (primary_.shard == primary.shard) {
      counted = duty_.rule() == StandbyFeed::Rule::kHeld;
      duty_.Lost(clock_.Now());
      urgent_since_ = clock_.Now();
      UseRule();
    }
  }
  Release();
  const absl::Status finished = call->Finish();
  if (CheckWanted(primary).code() == absl::StatusCode::kCancelled) return;
  // Its ps ends, or has given it to a successor of this process.
  if (absl::IsCancelled(finished) && absl::IsUnknown(ended)) {
    LOG(INFO) << place.task() << " has ended the standby of this shard";
    return;
  }
  const absl::string_view why = absl::IsUnknown(ended) && !finished.ok()
                                    ? finished.message()
                                    : ended.message();
  if (counted) {
    LOG(WARNING) << "the standby of this shard on " << place.task()
                 << " is lost: " << why;
  } else {
    LOG_EVERY(WARNING, kLogInterval)
        << "no standby of this shard on " << place.task() << " yet: " << why;
  }
}

FollowMessage StandbyKeeper::HeaderFor(const Primary& primary,
                                       const wire::StandbyPlace& place) const {
  FollowMessage message;
  wire::FollowHeader& header = *message.request.mutable_header();
  header.set_run_id(primary.order.run_id());
  header.set_layout(primary.order.order().layout());
  header.set_shard(primary.order.shard());
  header.set_num_shards(primary.order.num_shards());
  header.set_place_epoch(options_.place_epoch());
  header.set_ps_incarnation(place.ps_incarnation());
  wire::LoadRequest& load = *header.mutable_load();
  load = SettingsOf(primary.order);
  *load.mutable_standby() = place;
  return message;
}

absl::Status StandbyKeeper::CheckWanted(const Primary& primary) const {
  absl::MutexLock lock(&mu_);
  if (is_stopping_ || primary_.shard != primary.shard) {
    return absl::CancelledError("the shard is let go");
  }
  if (has_ended_) return CallEnded();
  if (duty_.IsMisplaced()) {
    return absl::AbortedError("the chief names another process");
  }
  return absl::OkStatus();
}

absl::Status StandbyKeeper::Send(const Primary& primary,
                                 const wire::StandbyPlace& place,
                                 StandbyCall& call) {
  if (!Write(call, {HeaderFor(primary, place)})) return CallEnded();
  RETURN_IF_ERROR(SendState(primary, call));
  return SendPushes(primary, call);
}

absl::Status StandbyKeeper::SendState(const Primary& primary,
                                      StandbyCall& call) {
  ASSIGN_OR_RETURN(ShardSnapshot snapshot,
                   primary.shard->TakeSnapshotForStandby(
                       clock_, [&] { return !CheckWanted(primary).ok(); }));
  ASSIGN_OR_RETURN(const ShardState state,
                   ShardState::Write(std::move(snapshot), primary.order.shard(),
                                     primary.order.num_shards(),
                                     primary.shard->bytes().all()));
  RETURN_IF_ERROR(state.ForEachPiece([&](absl::string_view piece) {
    FollowMessage message;
    message.request.set_state(piece.data(), piece.size());
    if (!Write(call, {std::move(message)})) return CallEnded();
    return CheckWanted(primary);
  }));
  FollowMessage end;
  end.request.set_state_end(true);
  if (PushJournal* const journal = primary.shard->journal()) {
    const JournalEnd in_journal = journal->end();
    end.request.set_journal(in_journal.journal);
    end.request.set_journal_record(in_journal.record);
    RETURN_IF_ERROR(journal->Flush());
  }
  {
    absl::MutexLock lock(&mu_);
    is_loading_ = true;
  }
  return Write(call, {std::move(end)}) ? absl::OkStatus() : CallEnded();
}

absl::Status StandbyKeeper::SendPushes(const Primary& primary,
                                       StandbyCall& call) {
  StandbyFeed& feed = *primary.shard->feed();
  absl::Time moved = clock_.Now();
  int64_t held = -1;
  while (true) {
    RETURN_IF_ERROR(CheckWanted(primary));
    if (!feed.is_streaming()) {
      return absl::AbortedError(
          "this shard had no room for a gradient that it may have taken");
    }
    const std::vector<FollowMessage> messages = feed.Take(kWriteBytes, kLook);
    if (!messages.empty() && !Write(call, messages)) return CallEnded();
    absl::Duration patience;
    {
      absl::MutexLock lock(&mu_);
      patience = Patience();
    }
    const int64_t behind = feed.behind();
    metrics_.standby_records_behind.Set(static_cast<double>(behind));
    const int64_t holds = feed.appended() - behind;
    const absl::Time now = clock_.Now();
    if (behind == 0 || holds != held) moved = now;
    held = holds;
    if (now - moved > patience) {
      return absl::DeadlineExceededError(
          absl::StrCat("it has taken no push for ",
                       absl::FormatDuration(patience), ", and lacks ", behind));
    }
  }
}

absl::Status StandbyKeeper::Hear(const Primary& primary,
                                 const wire::FollowResponse& answer) {
  StandbyFeed& feed = *primary.shard->feed();
  {
    absl::MutexLock lock(&mu_);
    // The stream is over: the standby is lost.
    if (call_ == nullptr) return absl::OkStatus();
    is_loading_ = false;
    if (primary_.shard == primary.shard) {
      duty_.HearStandby(answer, feed);
      UseRule();
    }
  }
  return feed.Held(answer.held());
}

}  // namespace parasol
