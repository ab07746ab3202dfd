#ifndef PARASOL_PS_STANDBY_STANDBY_DUTY_H_
#define PARASOL_PS_STANDBY_STANDBY_DUTY_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/journal/standby_feed.h"

namespace parasol {

// The reports of a shard that has a standby to the chief, and the rule by which
// its pushes are acknowledged: docs/design/standby.md. Pure.
//
// The chief keeps which standby has all acknowledged pushes. So a shard
// acknowledges pushes without its standby only when the chief has kept that it
// is alone, and with the standby only when that is what the chief has kept, or
// is about to keep.
class StandbyDuty {
 public:
  // Time between two attempts to make a standby; doubles up to kMaxRetry while
  // none succeeds.
  static constexpr absl::Duration kRetry = absl::Milliseconds(200);
  static constexpr absl::Duration kMaxRetry = absl::Minutes(1);

  // Notes that the ps has been loaded, with a shard that it did not hold
  // (`is_new`) or the one that it held. `kept`: the number that the chief has
  // kept for the shard.
  void Loaded(bool is_new, uint64_t kept);
  // Notes that the ps holds no shard with a standby any more.
  void LetGo();

  // Fills in a heartbeat.
  void Report(wire::HeartbeatRequest& request, absl::Time now);
  // Takes the answer to the heartbeat that was filled in last; a heartbeat that
  // was not answered has none.
  void Hear(const wire::HeartbeatResponse& answer);

  // Returns the place at which a standby is to be made now; nullopt: not now.
  std::optional<wire::StandbyPlace> ToMake(absl::Time now) const;
  // Returns true if the standby that there is, or that is being made, is at no
  // place that the chief names: it is to be given up.
  bool IsMisplaced() const;
  // Notes that a standby is being made at `place`.
  void Making(const wire::StandbyPlace& place, absl::Time now);
  // Takes an answer of the standby. The first one says that it has the shard's
  // state: from then on it holds what is acknowledged, too. When it also holds
  // what `feed` has acknowledged before, the chief may be told of it.
  void HearStandby(const wire::FollowResponse& answer, StandbyFeed& feed);
  // Notes that the standby is lost, or was not made.
  void Lost(absl::Time now);

  StandbyFeed::Rule rule() const;
  // Returns true if the next heartbeat is urgent: pushes wait for its answer,
  // or the standby does not count yet.
  bool IsUrgent() const;
  // Returns true if there is a shard without a standby.
  bool HasNone() const { return has_shard_ && standing_ == Standing::kNone; }
  // Returns true if the chief has kept the standby.
  bool IsInSync() const {
    return !awaits_chief_ && standing_ == Standing::kCounts && is_confirmed_;
  }

 private:
  enum class Standing { kNone, kMaking, kJoined, kCounts };

  // Notes that the next report differs from those before.
  void Change() { ++version_; }

  bool has_shard_ = false;
  // True until the chief has answered what it has kept: it may be something
  // else than what holds.
  bool awaits_chief_ = false;
  // True if the chief has kept the standby that counts.
  bool is_confirmed_ = false;
  Standing standing_ = Standing::kNone;
  // The standby that is made, has joined or counts; its number from then on.
  wire::StandbyPlace place_;
  // Number of the feed's records when its holding of them began to count.
  int64_t joined_at_ = 0;
  absl::Time making_since_;
  // The number of the last standby that was given up.
  uint64_t given_up_ = 0;
  absl::Time next_ = absl::InfinitePast();
  absl::Duration retry_ = kRetry;
  // The place that the chief names.
  std::optional<wire::StandbyPlace> host_;
  // Numbers of the state that is reported, now and last.
  int64_t version_ = 0;
  int64_t reported_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PS_STANDBY_STANDBY_DUTY_H_
