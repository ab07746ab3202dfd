#include "ps/standby/standby_duty.h"

#include <algorithm>

#include "cluster/rpc/proto_duration.h"

namespace parasol {

void StandbyDuty::Loaded(bool is_new, uint64_t kept) {
  has_shard_ = true;
  awaits_chief_ = true;
  if (is_new) {
    standing_ = Standing::kNone;
    next_ = absl::InfinitePast();
  }
  is_confirmed_ = false;
  const bool is_own = standing_ == Standing::kCounts && place_.number() == kept;
  if (kept != 0 && !is_own) given_up_ = kept;
  Change();
}

void StandbyDuty::LetGo() {
  has_shard_ = false;
  standing_ = Standing::kNone;
  is_confirmed_ = false;
  Change();
}

void StandbyDuty::Report(wire::HeartbeatRequest& request, absl::Time now) {
  reported_ = version_;
  if (!has_shard_) return;
  wire::StandbyReport& report = *request.mutable_standby();
  if (standing_ == Standing::kCounts) {
    report.mutable_place()->set_number(place_.number());
    report.mutable_place()->set_task(place_.task());
    return;
  }
  report.mutable_place()->set_number(given_up_);
  if (standing_ == Standing::kNone) return;
  *report.mutable_making() = ToProto(now - making_since_);
}

void StandbyDuty::Hear(const wire::HeartbeatResponse& answer) {
  const uint64_t former = host_ ? host_->ps_incarnation() : 0;
  host_.reset();
  if (answer.has_standby_host()) host_ = answer.standby_host();
  // It was lost with the process that was there.
  if (host_ && host_->ps_incarnation() != former) {
    next_ = absl::InfinitePast();
    retry_ = kRetry;
  }
  if (!has_shard_ || !answer.has_kept_standby() || reported_ != version_) {
    return;
  }
  const bool counts = standing_ == Standing::kCounts;
  if (answer.kept_standby() != (counts ? place_.number() : 0)) return;
  awaits_chief_ = false;
  is_confirmed_ = counts;
}

std::optional<wire::StandbyPlace> StandbyDuty::ToMake(absl::Time now) const {
  // While it is not known to be alone, the standby that the chief has kept may
  // be at that place.
  if (!has_shard_ || awaits_chief_ || standing_ != Standing::kNone ||
      now < next_) {
    return std::nullopt;
  }
  return host_;
}

bool StandbyDuty::IsMisplaced() const {
  return standing_ != Standing::kNone && host_.has_value() &&
         host_->ps_incarnation() != place_.ps_incarnation();
}

void StandbyDuty::Making(const wire::StandbyPlace& place, absl::Time now) {
  standing_ = Standing::kMaking;
  place_ = place;
  making_since_ = now;
}

void StandbyDuty::HearStandby(const wire::FollowResponse& answer,
                              StandbyFeed& feed) {
  if (standing_ == Standing::kMaking) {
    standing_ = Standing::kJoined;
    retry_ = kRetry;
    place_.set_number(answer.number());
    feed.SetRule(rule());
    joined_at_ = feed.appended();
  }
  if (standing_ != Standing::kJoined || answer.held() < joined_at_) return;
  standing_ = Standing::kCounts;
  is_confirmed_ = false;
  Change();
}

void StandbyDuty::Lost(absl::Time now) {
  if (standing_ == Standing::kNone) return;
  // The chief may have kept it.
  if (standing_ == Standing::kCounts) {
    given_up_ = place_.number();
    awaits_chief_ = true;
  }
  standing_ = Standing::kNone;
  is_confirmed_ = false;
  next_ = now + retry_;
  retry_ = std::min(2 * retry_, kMaxRetry);
  Change();
}

StandbyFeed::Rule StandbyDuty::rule() const {
  if (awaits_chief_) return StandbyFeed::Rule::kWait;
  return standing_ == Standing::kJoined || standing_ == Standing::kCounts
             ? StandbyFeed::Rule::kHeld
             : StandbyFeed::Rule::kAlone;
}

bool StandbyDuty::IsUrgent() const {
  return has_shard_ &&
         (awaits_chief_ || (standing_ == Standing::kCounts && !is_confirmed_));
}

}  // namespace parasol
