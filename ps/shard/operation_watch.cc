#include "ps/shard/operation_watch.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "cluster/rpc/proto_duration.h"

namespace parasol {

void OperationWatch::Running::End(absl::Time now) {
  watch_.operations_.fetch_add(1, std::memory_order_relaxed);
  watch_.busy_nanos_.fetch_add(absl::ToInt64Nanoseconds(now - start_),
                               std::memory_order_relaxed);
  if (entry_ != nullptr) entry_->store(0, std::memory_order_relaxed);
}

std::atomic<int64_t>* OperationWatch::TakeEntry(absl::Time now) {
  // A thread finds its last entry free, as a rule.
  static std::atomic<size_t> threads = 0;
  thread_local const int self = gettid();
  thread_local size_t entry = threads++ % kStarts;
  const int64_t nanos = std::max<int64_t>(1, absl::ToUnixNanos(now));
  for (size_t i = 0; i < kStarts; ++i) {
    int64_t none = 0;
    if (starts_[entry].nanos.compare_exchange_strong(
            none, nanos, std::memory_order_relaxed)) {
      starts_[entry].thread.store(self, std::memory_order_relaxed);
      return &starts_[entry].nanos;
    }
    entry = (entry + 1) % kStarts;
  }
  return nullptr;
}

absl::Time OperationWatch::OldestStart() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const Start& start : starts_) {
    const int64_t nanos = start.nanos.load(std::memory_order_relaxed);
    if (nanos != 0) oldest = std::min(oldest, absl::FromUnixNanos(nanos));
  }
  return oldest;
}

int OperationWatch::BusiestThread() const {
  int64_t oldest = INT64_MAX;
  int thread = 0;
  for (const Start& start : starts_) {
    const int64_t nanos = start.nanos.load(std::memory_order_relaxed);
    if (nanos == 0 || nanos >= oldest) continue;
    oldest = nanos;
    thread = start.thread.load(std::memory_order_relaxed);
  }
  return thread;
}

void OperationWatch::Rotate(absl::Time now) {
  if (now - windows_.current.start < kWindow) return;
  windows_.last = std::exchange(windows_.current, Window(now));
}

void OperationWatch::Gradient(uint64_t worker, int64_t step, absl::Time now) {
  absl::MutexLock lock(&mu_);
  Rotate(now);
  if (step > step_) {
    EndStep();
    step_ = step;
  }
  if (step < step_) return;
  if (came_.size() < kMaxWorkers || came_.contains(worker)) came_[worker] = now;
}

void OperationWatch::StartOver() {
  absl::MutexLock lock(&mu_);
  step_ = -1;
  came_.clear();
}

void OperationWatch::EndStep() {
  absl::Time last = absl::InfinitePast();
  absl::Time before = absl::InfinitePast();
  uint64_t worker = 0;
  for (const auto& [each, time] : came_) {
    if (time > last) {
      before = std::exchange(last, time);
      worker = each;
    } else {
      before = std::max(before, time);
    }
  }
  std::map<uint64_t, absl::Duration>& late = windows_.current.late;
  if (came_.size() >= 2 && late.size() < kMaxWorkers) {
    late[worker] += last - before;
  }
  came_.clear();
}

void OperationWatch::PushedRow(uint32_t table, uint64_t row, absl::Time now) {
  absl::MutexLock lock(&mu_);
  Rotate(now);
  Window& window = windows_.current;
  ++window.sampled_rows;
  const auto it = window.rows.find({table, row});
  if (it != window.rows.end()) {
    ++it->second;
  } else if (window.rows.size() < kRows) {
    window.rows[{table, row}] = 1;
  } else {
    ++window.given_up;
    for (auto& each : window.rows) --each.second;
    std::erase_if(window.rows,
                  [](const auto& each) { return each.second == 0; });
  }
}

std::optional<OperationWatch::HotRow> OperationWatch::HottestRow(
    absl::Time now) {
  absl::MutexLock lock(&mu_);
  Rotate(now);
  std::map<Row, int64_t> counts = windows_.current.rows;
  int64_t sampled = windows_.current.sampled_rows;
  if (windows_.last) {
    sampled += windows_.last->sampled_rows;
    for (const auto& [row, count] : windows_.last->rows) counts[row] += count;
  }
  if (sampled < kMinSampledRows || counts.empty()) return std::nullopt;
  const auto& [row, count] = *std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return HotRow{
      .table = row.first,
      .row = row.second,
      .share = static_cast<double>(count) / static_cast<double>(sampled)};
}

wire::PsLoad OperationWatch::Load(double push_bytes, double pull_bytes,
                                  absl::Time now) {
  wire::PsLoad load;
  if (const absl::Time oldest = OldestStart();
      oldest < absl::InfiniteFuture()) {
    *load.mutable_stuck() =
        ToProto(std::max(absl::ZeroDuration(), now - oldest));
  }
  absl::MutexLock lock(&mu_);
  Rotate(now);
  const std::vector<double> rates = recent_.Rates(
      {static_cast<double>(operations_.load(std::memory_order_relaxed)),
       static_cast<double>(busy_nanos_.load(std::memory_order_relaxed)) / 1e9,
       push_bytes, pull_bytes},
      now);
  load.set_operations_per_second(rates[0]);
  load.set_busy_threads(rates[1]);
  load.set_push_bytes_per_second(rates[2]);
  load.set_pull_bytes_per_second(rates[3]);
  std::map<uint64_t, absl::Duration> late = windows_.current.late;
  absl::Time start = windows_.current.start;
  if (windows_.last) {
    start = windows_.last->start;
    for (const auto& [worker, time] : windows_.last->late) late[worker] += time;
  }
  if (late.empty() || now <= start) return load;
  const auto& [worker, time] = *std::max_element(
      late.begin(), late.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  load.set_late_incarnation(worker);
  load.set_late_share(std::min(1., absl::FDivDuration(time, now - start)));
  return load;
}

}  // namespace parasol
