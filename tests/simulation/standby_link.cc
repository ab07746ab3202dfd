#include "tests/simulation/standby_link.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "cluster/trust/process_secret.h"
#include "tests/simulation/chief_process.h"
#include "tests/simulation/ps_process.h"

namespace parasol::simulation {
namespace {

// As in StandbyKeeper, but that a schedule has fewer events.
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr absl::Duration kReportInterval = absl::Seconds(1);
constexpr absl::Duration kPlaceInterval = absl::Milliseconds(200);
constexpr absl::Duration kReportDeadline = absl::Seconds(4);
constexpr absl::Duration kStall = absl::Seconds(10);

}  // namespace

TaskId PlaceOf(const std::string& address) {
  const size_t dash = address.rfind('-');
  int index = 0;
  if (dash == std::string::npos ||
      !absl::SimpleAtoi(address.substr(dash + 1), &index)) {
    return {"nobody", 0};
  }
  return {address.substr(0, dash), index};
}

void StandbyLink::Loaded(bool is_new, uint64_t kept) {
  if (is_new) {
    CloseStream();
    for (Waiting& one : std::exchange(waiting_, {})) {
      one.done(absl::UnavailableError("the shard is replaced"));
    }
  }
  duty_.Loaded(is_new, kept);
  Release();
  if (!is_reporting_) Report();
}

void StandbyLink::Append(const StandbyRecord* record, Done done) {
  if (stream_ != 0 && record != nullptr) {
    queue_.push_back(*record);
    ++appended_;
  }
  waiting_.push_back({stream_, stream_ == 0 ? 0 : appended_, std::move(done)});
  Send();
  Release();
}

void StandbyLink::Release() {
  const StandbyFeed::Rule rule = duty_.rule();
  std::deque<Waiting> released;
  while (!waiting_.empty()) {
    const Waiting& first = waiting_.front();
    const bool is_held =
        number_ != 0 && first.stream == stream_ && first.record <= held_;
    if (rule == StandbyFeed::Rule::kWait ||
        (rule == StandbyFeed::Rule::kHeld && !is_held)) {
      break;
    }
    released.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  for (Waiting& one : released) one.done(absl::OkStatus());
}

void StandbyLink::Look() {
  const absl::Time now = world_.Now(ps_);
  const auto place = duty_.ToMake(now);
  if (place) Make(*place);
  Send();
  if (!is_reporting_ && (duty_.IsUrgent() || now >= next_report_)) Report();
  world_.After(ps_, kLook, [this] { Look(); });
}

void StandbyLink::Report() {
  if (ps_.held() == nullptr) return;
  wire::HeartbeatRequest request;
  *request.mutable_task() = ps_.task();
  callbacks_.describe(request);
  duty_.Report(request, world_.Now(ps_));
  is_reporting_ = true;
  next_report_ =
      world_.Now(ps_) + (duty_.HasNone() ? kPlaceInterval : kReportInterval);
  world_.Call<ChiefProcess, wire::HeartbeatResponse>(
      ps_, {"chief", 0}, kReportDeadline,
      [request = std::move(request)](
          ChiefProcess& chief,
          const World::Done<wire::HeartbeatResponse>& done) {
        chief.Heartbeat(request, done);
      },
      [this](const absl::StatusOr<wire::HeartbeatResponse>& answer) {
        is_reporting_ = false;
        if (!answer.ok() || answer->chief_epoch() < chief_epoch_) return;
        chief_epoch_ = answer->chief_epoch();
        duty_.Hear(*answer);
        if (stream_ != 0 && duty_.IsMisplaced()) Lose();
        Release();
        callbacks_.on_answer(*answer);
      });
}

void StandbyLink::Make(const wire::StandbyPlace& place) {
  duty_.Making(place, world_.Now(ps_));
  place_ = place;
  stream_ = ++streams_;
  number_ = 0;
  queue_.clear();
  appended_ = sent_ = held_ = 0;
  is_sending_ = false;
  // The state has them.
  for (Waiting& one : waiting_) {
    one.stream = stream_;
    one.record = 0;
  }
  const uint64_t number = world_.random().Next() >> 1 | 1;
  world_.Call<PsProcess, HostedStandbys*>(
      ps_, PlaceOf(place.address()), kStall,
      [place, number, state = callbacks_.state(),
       epoch = callbacks_.place_epoch()](
          PsProcess& host, const World::Done<HostedStandbys*>& done) {
        if (PublicNumber(host.incarnation()) != place.ps_incarnation()) {
          return done(absl::UnavailableError("another process"));
        }
        const absl::Status followed =
            host.hosted().Follow(state, epoch, number);
        if (!followed.ok()) return done(followed);
        done(&host.hosted());
      },
      [this, number, stream = stream_](const auto& answer) {
        if (stream != stream_) return;
        if (!answer.ok()) return Lose();
        number_ = number;
        joined_at_ = appended_;
        Hear();
        Send();
      });
}

void StandbyLink::Send() {
  if (stream_ == 0 || number_ == 0 || is_sending_ || queue_.empty()) return;
  is_sending_ = true;
  std::vector<StandbyRecord> records = std::exchange(queue_, {});
  const int64_t first =
      std::exchange(sent_, sent_ + static_cast<int64_t>(records.size()));
  world_.Call<PsProcess, int64_t>(
      ps_, PlaceOf(place_.address()), kStall,
      [shard = ps_.held()->shard, number = number_, first,
       records = std::move(records)](PsProcess& host,
                                     const World::Done<int64_t>& done) {
        done(host.hosted().Append(shard, number, first, records));
      },
      [this, stream = stream_](const absl::StatusOr<int64_t>& held) {
        if (stream != stream_) return;
        is_sending_ = false;
        if (!held.ok()) return Lose();
        held_ = *held;
        Hear();
        Send();
      });
}

void StandbyLink::Hear() {
  wire::FollowResponse answer;
  answer.set_number(number_);
  // The feed has no records: at the first one that counts it says 0.
  answer.set_held(held_ >= joined_at_ ? 0 : -1);
  duty_.HearStandby(answer, feed_);
  Release();
  if (duty_.IsUrgent() && !is_reporting_) Report();
}

void StandbyLink::Lose() {
  CloseStream();
  duty_.Lost(world_.Now(ps_));
  Release();
  if (duty_.IsUrgent() && !is_reporting_) Report();
}

void StandbyLink::CloseStream() {
  if (stream_ == 0) return;
  stream_ = 0;
  for (Waiting& one : waiting_) one.stream = 0;
  EndAtHost();
}

void StandbyLink::EndAtHost() {
  PsProcess* const host = Host();
  const ShardValues* const held = ps_.held();
  if (host == nullptr || held == nullptr || number_ == 0) return;
  world_.Send(ps_, *host, [host, shard = held->shard, number = number_] {
    host->PrimaryIsLost(shard, number);
  });
}

void StandbyLink::End() { CloseStream(); }

PsProcess* StandbyLink::Host() const {
  for (Process* const live : world_.Live()) {
    if (PublicNumber(live->incarnation()) == place_.ps_incarnation()) {
      return static_cast<PsProcess*>(live);
    }
  }
  return nullptr;
}

bool StandbyLink::IsProtected() const {
  const PsProcess* const host = Host();
  return duty_.IsInSync() && stream_ != 0 && host != nullptr &&
         host->is_reachable() && ps_.held() != nullptr &&
         host->hosted().Has(ps_.held()->shard, number_);
}

}  // namespace parasol::simulation
