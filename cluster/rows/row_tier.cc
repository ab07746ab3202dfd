#include "cluster/rows/row_tier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "cluster/rows/row_stripe.h"

namespace parasol {
namespace {

// How long a push waits for the disk at most.
constexpr absl::Duration kMostWait = absl::Milliseconds(50);
// How often it does while there is no memory for its rows: for a minute.
constexpr int kMostWaits = 1200;
// How often it is looked whether segments are to be compacted, and whether a
// disk that was full has room.
constexpr absl::Duration kLook = absl::Milliseconds(100);

size_t RowsOfStripe(size_t memory_bytes, size_t segment_bytes,
                    const RowLayout& layout) {
  const size_t of_log = RowTier::kSegmentsInMemory * segment_bytes;
  const size_t of_rows = memory_bytes - std::min(memory_bytes, of_log);
  return std::max<size_t>(
      1, of_rows / RowRules::BytesPerRow(layout) / kRowStripes);
}

}  // namespace

size_t RowTier::LeastMemoryBytes(const RowTierOptions& options,
                                 const RowLayout& layout) {
  return kSegmentsInMemory * options.segment_bytes +
         kRowStripes * RowRules::BytesPerRow(layout);
}

absl::Status RowTier::Check(const std::string& table,
                            const RowTierOptions& options,
                            const Optimizer& optimizer,
                            const RowLayout& layout) {
  const std::string tier = absl::StrCat("table ", table, ": tier");
  if (optimizer.other_rows() != Optimizer::OtherRows::kUntouched) {
    return absl::InvalidArgumentError(absl::StrCat(
        tier,
        ": with its optimizer each push changes all rows, also those on the "
        "disk; give the table Adagrad, SGD, Momentum or lazy Adam, or leave "
        "the tier out"));
  }
  const size_t least = LeastMemoryBytes(options, layout);
  if (options.memory_bytes < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        tier, ".memory_bytes is ", options.memory_bytes, ", but rows of ",
        RowRules::BytesPerRow(layout), " bytes need ", least, " or more"));
  }
  return absl::OkStatus();
}

RowTier::RowTier(std::string table, RowTierOptions options,
                 const RowLayout& layout)
    : table_(std::move(table)),
      options_(std::move(options)),
      layout_(layout),
      // The log takes the words of a row as they are in memory.
      log_(std::make_shared<RowLog>(
          options_.file,
          RowLog::Options{
              .format = {.floats = layout.words, .timed = layout.timed},
              .segment_bytes = options_.segment_bytes})),
      memory_bytes_(options_.memory_bytes),
      rows_of_stripe_(RowsOfStripe(options_.memory_bytes,
                                   options_.segment_bytes, layout)) {}

void RowTier::Start(MoveRow move) {
  move_ = std::move(move);
  if (has_thread()) {
    thread_ = std::thread([this] { Run(); });
  } else {
    options_.give_work([this] { return Work(); });
  }
}

void RowTier::Stop() {
  log_->Stop();
  if (thread_.joinable()) thread_.join();
}

void RowTier::Run() {
  while (!log_->is_stopped()) {
    if (!Work()) log_->AwaitWork(kLook);
  }
}

bool RowTier::Work() {
  const absl::StatusOr<bool> written = log_->Write();
  NoteWrite(written.status());
  if (!written.ok() || *written) return written.ok();
  const absl::StatusOr<bool> compacted = log_->Compact(move_);
  if (!compacted.ok()) {
    Fail(compacted.status()).IgnoreError();
    return false;
  }
  return *compacted;
}

void RowTier::NoteWrite(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (std::exchange(writes_fail_, !status.ok()) == !status.ok()) return;
  if (status.ok()) {
    LOG(INFO) << "table " << table_ << ": its tier takes rows again";
  } else {
    LOG(ERROR) << "table " << table_
               << ": rows can't be written to its tier: " << status.message()
               << "; they stay in memory, and pushes are refused when that is "
                  "full: free space or raise the limit, or choose another "
                  "--tier_dir";
  }
}

void RowTier::TakeMemoryOf(const RowTier& other) {
  memory_bytes_ = other.memory_bytes_.load();
  rows_of_stripe_ =
      RowsOfStripe(memory_bytes_, options_.segment_bytes, layout_);
}

absl::Status RowTier::AwaitRoom(size_t rows_in_memory) {
  // As many rows as a segment has may come to those that stay.
  const size_t most = rows_of_stripe() * kRowStripes +
                      options_.segment_bytes / log_->format().record_bytes();
  for (int i = 0; i < kMostWaits; ++i) {
    RETURN_IF_ERROR(status());
    const absl::Status room =
        log_->AwaitRoom(has_thread() ? kMostWait : absl::ZeroDuration());
    if (!room.ok()) return NoRoom(room);
    const bool has_room = rows_in_memory <= most || !log_->is_behind();
    if (has_room || !has_thread()) return absl::OkStatus();
  }
  return NoRoom(absl::ResourceExhaustedError("it has taken none for a minute"));
}

absl::Status RowTier::NoRoom(const absl::Status& why) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "table ", table_, ": tier.memory_bytes of ", memory_bytes_.load(),
      " are in use, and rows can't be written to the disk: ", why.message(),
      "; free space or raise the limit, or choose another --tier_dir"));
}

absl::Status RowTier::AwaitAllRoom() {
  while (log_->is_behind()) {
    if (!has_thread()) Work();
    RETURN_IF_ERROR(AwaitRoom(SIZE_MAX));
  }
  return status();
}

absl::Status RowTier::Fail(const absl::Status& status) {
  absl::Status failure;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    // Whoever sends the request again comes to a ps that has the row.
    failure_ = absl::UnavailableError(absl::StrCat(
        "table ", table_, ": a row on the disk of the tier is lost: ",
        status.message(), "; the shard has to be loaded again"));
    failure = failure_;
    has_failed_ = true;
  }
  LOG(ERROR) << failure.message();
  if (options_.on_failure != nullptr) options_.on_failure(failure);
  return failure;
}

absl::Status RowTier::status() const {
  if (!has_failed_.load(std::memory_order_relaxed)) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  return failure_;
}

}  // namespace parasol
