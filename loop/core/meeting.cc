#include "loop/core/meeting.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol::loop {

Meeting::Meeting(std::vector<std::string> names)
    : names_(std::move(names)),
      has_ended_(names_.size()),
      brought_(names_.size()) {}

void Meeting::Begin() {
  absl::MutexLock lock(&mu_);
  failure_ = absl::OkStatus();
  std::fill(has_ended_.begin(), has_ended_.end(), false);
  ended_ = 0;
  arrived_ = 0;
}

absl::Status Meeting::Join(
    int replica, absl::string_view what, const void* brought,
    absl::FunctionRef<absl::Status(absl::Span<const void* const>)> act) {
  absl::ReleasableMutexLock lock(&mu_);
  if (!failure_.ok()) return failure_;
  if (arrived_ == 0) {
    what_ = std::string(what);
    first_ = replica;
  } else if (what != what_) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        names_[replica], " has come to ", what, ", and ", names_[first_],
        " to ", what_,
        ": all replicas must do the same in a step, in the same order")));
    return failure_;
  }
  brought_[replica] = brought;
  ++arrived_;
  CheckNobodyIsMissing();
  if (!failure_.ok()) return failure_;
  const int64_t turn = done_;
  if (arrived_ < num_replicas()) {
    const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return done_ > turn || !failure_.ok();
    };
    mu_.Await(absl::Condition(&is_over));
    return done_ > turn ? absl::OkStatus() : failure_;
  }
  const std::vector<const void*> all = brought_;
  lock.Release();
  const absl::Status result = act(all);
  absl::MutexLock end(&mu_);
  arrived_ = 0;
  if (!result.ok()) {
    Fail(result);
    return failure_;
  }
  ++done_;
  return absl::OkStatus();
}

void Meeting::End(int replica, const absl::Status& result) {
  absl::MutexLock lock(&mu_);
  if (!result.ok()) Fail(result);
  CHECK(!has_ended_[replica]) << replica;
  has_ended_[replica] = true;
  ++ended_;
  CheckNobodyIsMissing();
}

absl::Status Meeting::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

void Meeting::Fail(const absl::Status& why) {
  if (failure_.ok()) failure_ = why;
}

void Meeting::CheckNobodyIsMissing() {
  if (arrived_ == 0 || ended_ == 0 || arrived_ == num_replicas()) return;
  const auto gone = std::find(has_ended_.begin(), has_ended_.end(), true);
  Fail(absl::InvalidArgumentError(absl::StrCat(
      names_[gone - has_ended_.begin()], " has ended its step without ", what_,
      ", for which ", names_[first_],
      " waits: all replicas must do the same in a step")));
}

}  // namespace parasol::loop
