#include "ps/journal/standby_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

// Returns true if the record joins the message.
bool Fits(const FollowMessage& message, size_t bytes, size_t tensors,
          const FollowRecord& record) {
  return !message.records.empty() &&
         bytes + record.bytes() <= StandbyFeed::kMessageBytes &&
         tensors + record.tensors.size() <= kMaxRangesPerMessage;
}

absl::Status LetGo() {
  return absl::UnavailableError(
      "the shard has been let go: send the push again");
}

}  // namespace

wire::LoadRequest SettingsOf(const wire::LoadRequest& order) {
  wire::LoadRequest settings = order;
  settings.clear_order();
  settings.clear_checkpoint();
  settings.clear_standby();
  settings.clear_global_step();
  return settings;
}

absl::Status StandbyFeed::ApplyAndAppend(const ReceivedPush& push,
                                         std::optional<int64_t> step,
                                         uint64_t journal_record,
                                         absl::FunctionRef<bool()> apply) {
  bool is_wanted;
  {
    // No stream begins while this push is being applied.
    absl::MutexLock lock(&mu_);
    if (is_closed_) return LetGo();
    is_wanted = IsWanted(step);
  }
  if (!is_wanted) {
    apply();
    return absl::OkStatus();
  }
  FollowRecord record = RecordToSend(push);
  absl::MutexLock order(&order_mu_);
  if (!apply()) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  if (!is_streaming_) return absl::OkStatus();
  ++appended_;
  unheld_.push_back(std::min(record.bytes(), kWindowBytes / 2));
  unheld_bytes_ += unheld_.back();
  queue_.push_back({.record = std::move(record),
                    .change = std::nullopt,
                    .journal_record = journal_record});
  return absl::OkStatus();
}

void StandbyFeed::NoteKept(uint64_t journal_record) {
  absl::MutexLock lock(&mu_);
  kept_ = std::max(kept_, journal_record);
}

bool StandbyFeed::IsWanted(std::optional<int64_t> step) const {
  return is_streaming_ && (!from_step_ || !step || *step >= *from_step_);
}

absl::Status StandbyFeed::AwaitRoom(std::optional<int64_t> step) {
  absl::MutexLock lock(&mu_);
  if (!is_closed_ && !IsWanted(step)) return absl::OkStatus();
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_closed_ || !is_streaming_ || unheld_bytes_ < kWindowBytes;
  };
  const bool has =
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_room), kRoomWait);
  if (is_closed_) return LetGo();
  if (has) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the shard's standby is ", unheld_bytes_,
                   " bytes behind: send the push again"));
}

void StandbyFeed::AppendChange(const wire::LoadRequest& change) {
  absl::MutexLock lock(&mu_);
  // The next stream may have been asked for before it.
  if (change.global_step() == 0) rules_ = change;
  if (is_streaming_) Queue(change);
}

void StandbyFeed::Queue(const wire::LoadRequest& change) {
  ++appended_;
  unheld_.push_back(0);
  queue_.push_back({.record = {}, .change = change, .journal_record = 0});
}

void StandbyFeed::ClearQueue() {
  queue_.clear();
  unheld_.clear();
  unheld_bytes_ = 0;
}

bool StandbyFeed::IsKept(const Waiting& one) const {
  switch (rule_) {
    case Rule::kWait:
      return false;
    case Rule::kAlone:
      return true;
    case Rule::kHeld:
      // The state of a later stream has what the earlier ones had.
      return one.stream < stream_ || one.record <= held_;
  }
  return false;
}

void StandbyFeed::WhenKept(Done done) {
  absl::Status outcome;
  {
    absl::MutexLock lock(&mu_);
    Waiting one{.stream = stream_, .record = appended_, .done = nullptr};
    if (is_closed_) {
      outcome = LetGo();
    } else if (!waiting_.empty() || !IsKept(one)) {
      // Behind those that wait: they are called in their order.
      one.done = std::move(done);
      waiting_.push_back(std::move(one));
    }
  }
  if (done == nullptr) return Release();
  done(outcome);
}

void StandbyFeed::Release() {
  std::vector<Done> ready;
  absl::Status outcome;
  {
    absl::MutexLock lock(&mu_);
    while (!waiting_.empty() && (is_closed_ || IsKept(waiting_.front()))) {
      ready.push_back(std::move(waiting_.front().done));
      waiting_.pop_front();
    }
    if (is_closed_) outcome = LetGo();
    ++calls_;
  }
  for (const Done& done : ready) done(outcome);
  absl::MutexLock lock(&mu_);
  --calls_;
}

void StandbyFeed::Begin(std::optional<int64_t> from_step) {
  absl::MutexLock lock(&mu_);
  if (is_closed_) return;
  ++stream_;
  is_streaming_ = true;
  from_step_ = from_step;
  appended_ = 0;
  held_ = 0;
  ClearQueue();
  if (rules_) Queue(*rules_);
}

std::vector<FollowMessage> StandbyFeed::Take(size_t max_bytes,
                                             absl::Duration limit) {
  std::deque<Item> taken;
  {
    absl::MutexLock lock(&mu_);
    const auto has_some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return HasNext() || !is_streaming_;
    };
    clock_.AwaitWithTimeout(mu_, absl::Condition(&has_some), limit);
    size_t bytes = 0;
    while (HasNext() && bytes < max_bytes) {
      bytes += queue_.front().record.bytes() + 1;
      taken.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  std::vector<FollowMessage> messages;
  size_t bytes = 0;  // of the last message
  size_t tensors = 0;
  for (Item& item : taken) {
    if (item.change.has_value()) {
      *messages.emplace_back().request.mutable_header()->mutable_load() =
          *std::move(item.change);
      continue;
    }
    if (messages.empty() ||
        !Fits(messages.back(), bytes, tensors, item.record)) {
      messages.emplace_back();
      bytes = 0;
      tensors = 0;
    }
    bytes += item.record.bytes();
    tensors += item.record.tensors.size();
    messages.back().request.set_journal_record(item.journal_record);
    messages.back().records.push_back(std::move(item.record));
  }
  return messages;
}

absl::Status StandbyFeed::Held(int64_t records) {
  {
    absl::MutexLock lock(&mu_);
    if (records < 0 || records > appended_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the standby says that it holds ", records, " of ",
                       appended_, " records"));
    }
    if (!is_streaming_) return absl::OkStatus();
    while (held_ < records) {
      ++held_;
      unheld_bytes_ -= unheld_.front();
      unheld_.pop_front();
    }
  }
  Release();
  return absl::OkStatus();
}

int64_t StandbyFeed::appended() const {
  absl::MutexLock lock(&mu_);
  return appended_;
}

bool StandbyFeed::is_streaming() const {
  absl::MutexLock lock(&mu_);
  return is_streaming_;
}

int64_t StandbyFeed::behind() const {
  absl::MutexLock lock(&mu_);
  return is_streaming_ ? appended_ - held_ : 0;
}

void StandbyFeed::End() {
  absl::MutexLock lock(&mu_);
  is_streaming_ = false;
  ClearQueue();
  // What is applied from now on the standby does not get.
  if (rule_ == Rule::kHeld) rule_ = Rule::kWait;
}

void StandbyFeed::SetRule(Rule rule) {
  absl::MutexLock lock(&mu_);
  // Without a stream the standby holds nothing that is applied from now on.
  rule_ = rule == Rule::kHeld && !is_streaming_ ? Rule::kWait : rule;
}

void StandbyFeed::Close() {
  {
    absl::MutexLock lock(&mu_);
    is_closed_ = true;
    is_streaming_ = false;
    ClearQueue();
  }
  Release();
  absl::MutexLock lock(&mu_);
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return calls_ == 0;
  };
  mu_.Await(absl::Condition(&is_idle));
}

}  // namespace parasol
