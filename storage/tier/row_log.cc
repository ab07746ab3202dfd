#include "storage/tier/row_log.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Segments below which nothing is compacted.
constexpr size_t kFewSegments = 4;
// The part of all places that are in use, in percent, below which segments are
// compacted, and the part of a segment's above which it is not worth it.
constexpr size_t kFullEnough = 70;
constexpr size_t kTooFull = 85;

// Bytes of a segment that are read at once.
constexpr size_t kReadAtOnce = 1 << 20;

// Most rows that are read at once, and bytes for them: so many more than a disk
// has under way that it is seldom idle between them.
constexpr size_t kRowsAtOnce = 1024;
constexpr size_t kBytesAtOnce = 16 << 20;

constexpr size_t kBlock = TierFile::kBlockBytes;

size_t Down(size_t bytes) { return bytes / kBlock * kBlock; }
size_t Up(size_t bytes) { return Down(bytes + kBlock - 1); }

bool Has(const std::vector<uint64_t>& bits, size_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}

}  // namespace

RowLog::RowLog(std::shared_ptr<TierFile> file, const Options& options)
    : file_(std::move(file)),
      options_(options),
      rows_per_segment_(options.segment_bytes / options.format.record_bytes()),
      segment_memory_(Up(options.segment_bytes)) {
  CHECK_GT(rows_per_segment_, 0u);
}

LogPlace RowLog::Append(const LoggedRow& row) {
  absl::MutexLock lock(&mu_);
  return AppendLocked(row);
}

std::optional<LogPlace> RowLog::AppendUnlessBehind(const LoggedRow& row) {
  absl::MutexLock lock(&mu_);
  if (unwritten() > kMostUnwritten) return std::nullopt;
  return AppendLocked(row);
}

LogPlace RowLog::Move(LogPlace from, const LoggedRow& row) {
  absl::MutexLock lock(&mu_);
  LoggedRow moved = row;
  // ClampTouched() may have come since the row was read.
  moved.touched =
      std::min(moved.touched, segments_[SegmentOf(from)].touched_at_most);
  const LogPlace to = AppendLocked(moved);
  FreeLocked(from);
  return to;
}

void RowLog::Free(LogPlace place) {
  absl::MutexLock lock(&mu_);
  FreeLocked(place);
}

LogPlace RowLog::AppendLocked(const LoggedRow& row) {
  if (open_ == kNone) OpenSegment();
  Segment& segment = segments_[open_];
  const size_t i = segment.rows++;
  const LogPlace place = open_ * rows_per_segment_ + i;
  const LogRecordFormat& format = options_.format;
  format.Encode(row, place, open_bytes_ + i * format.record_bytes());
  segment.live[i / 64] |= uint64_t{1} << (i % 64);
  ++segment.live_rows;
  segment.newest_change = std::max(segment.newest_change, row.changed);
  if (segment.rows == rows_per_segment_) {
    segment.state = State::kFull;
    full_.push_back(std::exchange(open_, kNone));
  }
  return place;
}

void RowLog::OpenSegment() {
  if (free_.empty()) {
    open_ = segments_.size();
    segments_.emplace_back();
  } else {
    // The file stays short.
    open_ = free_.extract(free_.begin()).value();
  }
  const auto bytes = std::make_shared<BlockMemory>(segment_memory_);
  // What is behind the last record is written, too.
  std::memset(
      bytes->data() + rows_per_segment_ * options_.format.record_bytes(), 0,
      bytes->size() - rows_per_segment_ * options_.format.record_bytes());
  open_bytes_ = bytes->data();
  segments_[open_] = {.state = State::kOpen,
                      .live = std::vector<uint64_t>(rows_per_segment_ / 64 + 1),
                      .bytes = bytes};
  ++segments_in_memory_;
}

void RowLog::FreeLocked(LogPlace place) {
  Segment& segment = segments_[SegmentOf(place)];
  const size_t i = place % rows_per_segment_;
  CHECK(Has(segment.live, i)) << "place " << place;
  segment.live[i / 64] &= ~(uint64_t{1} << (i % 64));
  --segment.live_rows;
  GiveBackIfUseless(SegmentOf(place));
}

void RowLog::Unpin(size_t segment) {
  --segments_[segment].pins;
  GiveBackIfUseless(segment);
}

void RowLog::GiveBackIfUseless(size_t number) {
  Segment& segment = segments_[number];
  if (segment.live_rows > 0 || segment.pins > 0) return;
  if (segment.state == State::kFull) {
    full_.erase(std::find(full_.begin(), full_.end(), number));
  } else if (segment.state != State::kWritten) {
    return;
  }
  if (segment.bytes != nullptr) --segments_in_memory_;
  segment = Segment();
  free_.insert(number);
}

void RowLog::ClampTouched(int64_t most) {
  if (!options_.format.timed) return;
  absl::MutexLock lock(&mu_);
  for (Segment& segment : segments_) {
    segment.touched_at_most = std::min(segment.touched_at_most, most);
  }
  // Rows that come later keep what they have.
  if (open_ == kNone) return;
  segments_[open_].state = State::kFull;
  full_.push_back(std::exchange(open_, kNone));
  GiveBackIfUseless(full_.back());
}

absl::StatusOr<bool> RowLog::Write() {
  size_t number;
  std::shared_ptr<const BlockMemory> bytes;
  {
    absl::MutexLock lock(&mu_);
    if (full_.empty() || is_writing_) return false;
    number = full_.front();
    full_.pop_front();
    is_writing_ = true;
    segments_[number].state = State::kBeingWritten;
    bytes = segments_[number].bytes;
  }
  const absl::Status status = file_->Write(
      number * segment_memory_, absl::MakeSpan(bytes->data(), bytes->size()));
  bytes.reset();
  absl::MutexLock lock(&mu_);
  is_writing_ = false;
  write_failure_ = status;
  Segment& segment = segments_[number];
  if (!status.ok()) {
    segment.state = State::kFull;
    full_.push_front(number);
    GiveBackIfUseless(number);
    return status;
  }
  segment.state = State::kWritten;
  segment.bytes.reset();
  --segments_in_memory_;
  segments_in_file_ = std::max(segments_in_file_, number + 1);
  GiveBackIfUseless(number);
  return true;
}

size_t RowLog::ToCompact() const {
  size_t places = 0;
  size_t rows = 0;
  size_t emptiest = kNone;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    // Of those without rows nothing is to be had: a snapshot has them.
    if (segment.state != State::kWritten || segment.live_rows == 0) continue;
    places += rows_per_segment_;
    rows += segment.live_rows;
    if (segment.is_compacted) continue;
    if (emptiest == kNone ||
        segment.live_rows < segments_[emptiest].live_rows) {
      emptiest = i;
    }
  }
  const bool is_worth_it =
      emptiest != kNone && places > kFewSegments * rows_per_segment_ &&
      rows * 100 < places * kFullEnough &&
      segments_[emptiest].live_rows * 100 < rows_per_segment_ * kTooFull;
  return is_worth_it ? emptiest : kNone;
}

absl::StatusOr<bool> RowLog::Compact(
    absl::FunctionRef<void(LogPlace place, const LoggedRow& row)> move) {
  size_t number;
  std::vector<uint64_t> live;
  {
    absl::MutexLock lock(&mu_);
    number = ToCompact();
    if (number == kNone) return false;
    Segment& segment = segments_[number];
    ++segment.pins;
    segment.is_compacted = true;
    live = segment.live;
  }
  const absl::Status status =
      Visit(number, live, [&](LogPlace place, const LoggedRow& row) {
        move(place, row);
        return absl::OkStatus();
      });
  absl::MutexLock lock(&mu_);
  segments_[number].is_compacted = false;
  Unpin(number);
  RETURN_IF_ERROR(status);
  return true;
}

absl::Status RowLog::Visit(
    size_t segment, const std::vector<uint64_t>& live,
    absl::FunctionRef<absl::Status(LogPlace, const LoggedRow&)> visit) {
  const LogRecordFormat& format = options_.format;
  const size_t record_bytes = format.record_bytes();
  std::shared_ptr<const BlockMemory> bytes;
  int64_t touched_at_most;
  {
    absl::MutexLock lock(&mu_);
    bytes = segments_[segment].bytes;
    touched_at_most = segments_[segment].touched_at_most;
  }
  BlockMemory read;
  size_t read_first = 0;
  size_t read_end = 0;
  for (size_t i = 0; i < rows_per_segment_; ++i) {
    if (live[i / 64] == 0 && i % 64 == 0) {
      i += 63;
      continue;
    }
    if (!Has(live, i)) continue;
    const size_t offset = i * record_bytes;
    const std::byte* record = nullptr;
    if (bytes != nullptr) {
      record = bytes->data() + offset;
    } else {
      if (offset + record_bytes > read_end) {
        read_first = Down(offset);
        read_end = std::min(
            segment_memory_,
            Up(read_first + std::max(kReadAtOnce, kBlock + record_bytes)));
        if (read.size() < read_end - read_first) {
          read = BlockMemory(read_end - read_first);
        }
        const TierFile::Reading reading = {
            .offset = segment * segment_memory_ + read_first,
            .out = absl::MakeSpan(read.data(), read_end - read_first)};
        RETURN_IF_ERROR(file_->Read({&reading, 1}));
      }
      record = read.data() + (offset - read_first);
    }
    const LogPlace place = segment * rows_per_segment_ + i;
    RETURN_IF_ERROR(format.Verify(record, place));
    LoggedRow row = format.Decode(record);
    row.touched = std::min(row.touched, touched_at_most);
    RETURN_IF_ERROR(visit(place, row));
  }
  return absl::OkStatus();
}

void RowLog::AwaitWork(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopped_ || (!full_.empty() && write_failure_.ok());
  };
  Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&has_work), timeout);
}

void RowLog::Stop() {
  absl::MutexLock lock(&mu_);
  is_stopped_ = true;
}

bool RowLog::is_stopped() const {
  absl::MutexLock lock(&mu_);
  return is_stopped_;
}

bool RowLog::is_behind() const {
  absl::MutexLock lock(&mu_);
  return unwritten() > kMostUnwritten;
}

absl::Status RowLog::AwaitRoom(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopped_ || unwritten() <= kMostUnwritten;
  };
  if (Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&has_room),
                                     timeout)) {
    return absl::OkStatus();
  }
  return write_failure_;
}

size_t RowLog::memory_bytes() const {
  absl::MutexLock lock(&mu_);
  return segments_in_memory_ * segment_memory_;
}

uint64_t RowLog::file_bytes() const {
  absl::MutexLock lock(&mu_);
  return segments_in_file_ * segment_memory_;
}

LogSnapshot::LogSnapshot(std::shared_ptr<RowLog> log, uint32_t changed_since)
    : log_(std::move(log)), changed_since_(changed_since) {
  absl::MutexLock lock(&log_->mu_);
  for (size_t i = 0; i < log_->segments_.size(); ++i) {
    RowLog::Segment& segment = log_->segments_[i];
    if (segment.live_rows == 0 || segment.newest_change < changed_since) {
      continue;
    }
    ++segment.pins;
    rows_ += segment.live_rows;
    pieces_.push_back({.segment = i, .live = segment.live});
  }
}

LogSnapshot::LogSnapshot(const LogSnapshot& other)
    : log_(other.log_),
      changed_since_(other.changed_since_),
      rows_(other.rows_),
      pieces_(other.pieces_) {
  if (pieces_.empty()) return;
  absl::MutexLock lock(&log_->mu_);
  for (const Piece& piece : pieces_) ++log_->segments_[piece.segment].pins;
}

LogSnapshot& LogSnapshot::operator=(LogSnapshot other) noexcept {
  std::swap(log_, other.log_);
  std::swap(changed_since_, other.changed_since_);
  std::swap(rows_, other.rows_);
  std::swap(pieces_, other.pieces_);
  return *this;
}

void LogSnapshot::Release() {
  if (log_ == nullptr || pieces_.empty()) return;
  absl::MutexLock lock(&log_->mu_);
  for (const Piece& piece : pieces_) log_->Unpin(piece.segment);
  pieces_.clear();
}

absl::Status LogSnapshot::Drain(
    absl::FunctionRef<absl::Status(const LoggedRow&)> visit) {
  while (!pieces_.empty()) {
    const Piece& piece = pieces_.back();
    RETURN_IF_ERROR(log_->Visit(
        piece.segment, piece.live, [&](LogPlace, const LoggedRow& row) {
          return row.changed < changed_since_ ? absl::OkStatus() : visit(row);
        }));
    absl::MutexLock lock(&log_->mu_);
    log_->Unpin(piece.segment);
    pieces_.pop_back();
  }
  return absl::OkStatus();
}

RowReads::~RowReads() {
  if (wanted_.empty()) return;
  absl::MutexLock lock(&log_->mu_);
  for (const Wanted& row : wanted_) log_->Unpin(log_->SegmentOf(row.place));
}

void RowReads::Add(uint64_t id, LogPlace place) {
  const size_t record_bytes = log_->options_.format.record_bytes();
  records_.resize(records_.size() + record_bytes);
  absl::MutexLock lock(&log_->mu_);
  RowLog::Segment& segment = log_->segments_[log_->SegmentOf(place)];
  wanted_.push_back(
      {.id = id, .place = place, .touched_at_most = segment.touched_at_most});
  // Else another row could come to the same place, and be taken for this one.
  ++segment.pins;
  if (segment.bytes == nullptr) {
    on_disk_.push_back(wanted_.size() - 1);
    return;
  }
  std::memcpy(
      records_.data() + records_.size() - record_bytes,
      segment.bytes->data() + place % log_->rows_per_segment_ * record_bytes,
      record_bytes);
}

absl::Status RowReads::Finish() {
  const size_t bytes = Up(log_->options_.format.record_bytes()) + kBlock;
  const size_t at_once =
      std::clamp<size_t>(kBytesAtOnce / bytes, 1, kRowsAtOnce);
  for (size_t first = 0; first < on_disk_.size(); first += at_once) {
    RETURN_IF_ERROR(
        ReadSome(first, std::min(at_once, on_disk_.size() - first)));
  }
  return absl::OkStatus();
}

absl::Status RowReads::ReadSome(size_t first, size_t count) {
  const LogRecordFormat& format = log_->options_.format;
  const size_t record_bytes = format.record_bytes();
  const size_t most = Up(record_bytes) + kBlock;
  const BlockMemory blocks(count * most);
  std::vector<TierFile::Reading> readings(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t offset = log_->OffsetOf(wanted_[on_disk_[first + i]].place);
    const uint64_t begin = Down(offset);
    readings[i] = {.offset = begin,
                   .out = absl::MakeSpan(blocks.data() + i * most,
                                         Up(offset + record_bytes) - begin)};
  }
  RETURN_IF_ERROR(log_->file_->Read(readings));
  for (size_t i = 0; i < count; ++i) {
    const size_t number = on_disk_[first + i];
    const LogPlace place = wanted_[number].place;
    const std::byte* const record =
        readings[i].out.data() + log_->OffsetOf(place) % kBlock;
    RETURN_IF_ERROR(format.Verify(record, place));
    std::memcpy(records_.data() + number * record_bytes, record, record_bytes);
  }
  return absl::OkStatus();
}

LoggedRow RowReads::row(size_t i) const {
  const LogRecordFormat& format = log_->options_.format;
  LoggedRow row = format.Decode(records_.data() + i * format.record_bytes());
  row.touched = std::min(row.touched, wanted_[i].touched_at_most);
  return row;
}

}  // namespace parasol
