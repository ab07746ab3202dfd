#include "ps/journal/push_journal.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {

PushJournal::PushJournal(std::unique_ptr<JournalWriter> writer,
                         std::vector<Segment> segments)
    : writer_(std::move(writer)), segments_(std::move(segments)) {}

absl::Status PushJournal::AppendAndApply(
    const ReceivedPush& push, absl::FunctionRef<void(uint64_t)> apply) {
  const PushRecord record(push);
  absl::MutexLock lock(&order_mu_);
  RETURN_IF_ERROR(writer_->Append(record.pieces()));
  apply(writer_->last_record());
  return absl::OkStatus();
}

JournalPlace PushJournal::BeginCut(int64_t progress,
                                   std::optional<int64_t> updates) {
  const JournalPlace place = PlaceOfCut(progress, updates);
  // The segment is there when a checkpoint names it. After an error pushes are
  // refused, which says why.
  writer_->Flush().IgnoreError();
  return place;
}

JournalPlace PushJournal::PlaceOfCut(int64_t progress,
                                     std::optional<int64_t> updates) {
  absl::MutexLock lock(&order_mu_);
  const absl::StatusOr<uint64_t> begun = writer_->BeginSegment(progress);
  if (begun.ok()) {
    segments_.push_back({.number = *begun, .progress = progress});
  } else {
    LOG(WARNING) << "the journal goes on in its old segment: "
                 << begun.status().message();
  }
  // A gradient of step n is computed from values that have had n updates, so it
  // came after the beginning of a segment at which nothing had as many.
  size_t place = segments_.size() - 1;
  while (updates.has_value() && place > 0 &&
         segments_[place].progress >= *updates) {
    --place;
  }
  return {.journal = writer_->journal(), .segment = segments_[place].number};
}

void PushJournal::NoteComplete(const JournalPlace& place) {
  uint64_t kept;
  {
    absl::MutexLock lock(&order_mu_);
    kept = std::exchange(needed_, place.segment);
    if (kept == 0 || kept == place.segment) return;
    std::erase_if(segments_, [kept](const Segment& segment) {
      return segment.number < kept;
    });
  }
  writer_->RemoveBefore(kept);
}

}  // namespace parasol
