#include "ps/shard/dedup_window.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr char kWindowVersion = 1;
constexpr size_t kBitmapBytes = kDedupWindow / 8;
constexpr size_t kSerializedBytes = 1 + sizeof(uint64_t) + kBitmapBytes;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("dedup window: ", what));
}

}  // namespace

bool DedupWindow::IsJump(uint64_t sequence) const {
  if (sequence <= floor_ || sequence - floor_ <= kDedupWindow) return false;
  size_t marked = kDedupWindow;
  while (marked > 0 && !beyond_.test(marked - 1)) --marked;
  return sequence - floor_ - marked > kDedupWindow;
}

Claim DedupWindow::Mark(uint64_t sequence) {
  if (sequence <= floor_) return Claim::kDuplicate;
  if (sequence - floor_ > kDedupWindow) {
    const uint64_t shift = sequence - floor_ - kDedupWindow;
    beyond_ = shift < kDedupWindow ? beyond_ >> shift : 0;
    floor_ += shift;
  }
  const size_t bit = sequence - floor_ - 1;
  if (beyond_.test(bit)) return Claim::kDuplicate;
  beyond_.set(bit);
  while (beyond_.test(0)) {
    beyond_ >>= 1;
    ++floor_;
  }
  return Claim::kNew;
}

void DedupWindow::Unmark(uint64_t sequence) {
  if (sequence <= floor_) {
    const uint64_t above = floor_ - sequence;
    if (above + 1 >= kDedupWindow) return;
    beyond_ <<= above + 1;
    for (uint64_t i = 1; i <= above; ++i) beyond_.set(i);
    floor_ = sequence - 1;
  }
  beyond_.reset(sequence - floor_ - 1);
}

uint64_t DedupWindow::Lacks(uint64_t last) const {
  if (last <= floor_) return 0;
  uint64_t lacking = last - floor_;
  for (size_t i = 0; i < std::min<uint64_t>(last - floor_, kDedupWindow); ++i) {
    lacking -= beyond_.test(i);
  }
  return lacking;
}

void DedupWindow::MarkUpTo(uint64_t last) {
  if (last <= floor_) return;
  const uint64_t shift = last - floor_;
  beyond_ = shift < kDedupWindow ? beyond_ >> shift : 0;
  floor_ = last;
  while (beyond_.test(0)) {
    beyond_ >>= 1;
    ++floor_;
  }
}

std::string DedupWindow::Serialize() const {
  std::string bytes(kSerializedBytes, '\0');
  bytes[0] = kWindowVersion;
  for (size_t i = 0; i < sizeof(floor_); ++i) {
    bytes[1 + i] = static_cast<char>(floor_ >> (8 * i));
  }
  for (size_t i = 0; i < kDedupWindow; ++i) {
    if (beyond_.test(i)) bytes[1 + sizeof(floor_) + i / 8] |= 1 << (i % 8);
  }
  return bytes;
}

absl::StatusOr<DedupWindow> DedupWindow::Parse(absl::string_view bytes) {
  if (bytes.empty() || bytes[0] != kWindowVersion) {
    return Damaged("its version is not 1");
  }
  if (bytes.size() != kSerializedBytes) {
    return Damaged(absl::StrCat("has ", bytes.size(), " bytes, should have ",
                                kSerializedBytes));
  }
  DedupWindow window;
  for (size_t i = 0; i < sizeof(window.floor_); ++i) {
    window.floor_ |= uint64_t{static_cast<uint8_t>(bytes[1 + i])} << (8 * i);
  }
  for (size_t i = 0; i < kDedupWindow; ++i) {
    const uint8_t byte = bytes[1 + sizeof(window.floor_) + i / 8];
    window.beyond_.set(i, byte >> (i % 8) & 1);
  }
  if (window.beyond_.test(0)) return Damaged("the floor is too low");
  if (window.floor_ > UINT64_MAX - kDedupWindow && window.beyond_.any()) {
    return Damaged("it has a sequence over 2^64");
  }
  return window;
}

absl::StatusOr<Claim> DedupIndex::Mark(uint64_t incarnation, uint64_t sequence,
                                       uint64_t acknowledged) {
  if (incarnation == 0) {
    return absl::InvalidArgumentError("the push names no worker incarnation");
  }
  if (sequence == 0) {
    return absl::InvalidArgumentError("the push has no sequence");
  }
  if (under_way_.contains({incarnation, sequence})) return Claim::kUnderWay;
  const bool is_replayed = (acknowledged & kReplayed) != 0;
  acknowledged = std::min(acknowledged & ~kReplayed, sequence - 1);
  const auto known = workers_.find(incarnation);
  if (known == workers_.end()) {
    if (workers_.size() >= max_workers_) ForgetIdlest();
  } else if (!is_replayed && known->second.has_come &&
             known->second.window.IsJump(sequence)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push ", sequence, " is more than ", kDedupWindow,
        " ahead of the newest one of its worker: sequences have no gaps"));
  }
  Worker& worker = workers_[incarnation];
  const bool is_unknown = known == workers_.end() && has_forgotten_;
  if (!is_replayed && is_unknown) acknowledged = 0;
  if (!is_replayed && !worker.has_come) {
    worker.lost += worker.window.Lacks(acknowledged);
  }
  // A later successor would count the same gap again.
  if (is_replayed || !worker.has_come) worker.window.MarkUpTo(acknowledged);
  worker.has_come |= !is_replayed;
  worker.last_claim = ++claims_;
  const Claim claim = worker.window.Mark(sequence);
  if (claim == Claim::kNew) under_way_.emplace(incarnation, sequence);
  return claim;
}

uint64_t DedupIndex::TakeLost(uint64_t incarnation) {
  const auto worker = workers_.find(incarnation);
  return worker == workers_.end() ? 0 : std::exchange(worker->second.lost, 0);
}

void DedupIndex::Confirm(uint64_t incarnation, uint64_t sequence) {
  under_way_.erase({incarnation, sequence});
}

void DedupIndex::Unmark(uint64_t incarnation, uint64_t sequence) {
  under_way_.erase({incarnation, sequence});
  const auto worker = workers_.find(incarnation);
  if (worker != workers_.end()) worker->second.window.Unmark(sequence);
}

DedupWindows DedupIndex::Windows() const {
  DedupWindows windows;
  for (const auto& [incarnation, worker] : workers_) {
    windows.emplace_hint(windows.end(), incarnation, worker.window);
  }
  return windows;
}

void DedupIndex::Restore(const DedupWindows& windows) {
  for (const auto& [incarnation, window] : windows) {
    if (workers_.size() >= max_workers_) ForgetIdlest();
    workers_[incarnation].window = window;
  }
}

void DedupIndex::ForgetIdlest() {
  has_forgotten_ = true;
  workers_.erase(std::min_element(
      workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
        return a.second.last_claim < b.second.last_claim;
      }));
}

}  // namespace parasol
