#include "storage/journal/journal_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// Of a search for whole records behind damage.
constexpr uint64_t kSearchBytes = 1 << 20;

absl::Status Damaged(const std::string& path, uint64_t at,
                     absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, ": ", what, " at byte ", at,
                   "; acknowledged pushes from there on are lost"));
}

// Fills `out` with `count` bytes; fewer if the file ends.
absl::Status ReadBytes(const FileDescriptor& file, const std::string& path,
                       uint64_t from, uint64_t count, std::string& out) {
  out.resize(count);
  uint64_t done = 0;
  while (done < count) {
    const ssize_t result = pread(file.get(), out.data() + done, count - done,
                                 static_cast<off_t>(from + done));
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return ReadError(errno, "read", path);
    if (result == 0) break;
    done += result;
  }
  out.resize(done);
  return absl::OkStatus();
}

// Returns true if a record that is not an earlier one than `record` begins
// somewhere in [from, end).
absl::StatusOr<bool> HasRecord(const FileDescriptor& file,
                               const std::string& path, uint64_t from,
                               uint64_t end, uint64_t record) {
  std::string bytes;
  while (from + RecordHeader::kBytes <= end) {
    RETURN_IF_ERROR(
        ReadBytes(file, path, from, std::min(end - from, kSearchBytes), bytes));
    if (bytes.size() < RecordHeader::kBytes) break;
    const uint64_t heads = bytes.size() - RecordHeader::kBytes + 1;
    for (uint64_t i = 0; i < heads; ++i) {
      const auto header = RecordHeader::Decode(bytes.data() + i);
      if (header.has_value() && header->record >= record) return true;
    }
    from += heads;
  }
  return false;
}

absl::StatusOr<bool> HasAnyRecord(const std::string& directory,
                                  uint64_t segment) {
  const std::string path = absl::StrCat(directory, "/", SegmentName(segment));
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(path));
  ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  return HasRecord(file, path, 0, size, /*record=*/1);
}

absl::StatusOr<std::set<uint64_t>> SegmentsIn(const std::string& directory) {
  std::set<uint64_t> numbers;
  const auto names = ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return numbers;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const auto number = SegmentOfName(name);
    if (number.has_value()) numbers.insert(*number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<JournalReader::Segment> JournalReader::OpenSegment(
    const std::string& directory, uint64_t number) {
  Segment segment;
  segment.path = absl::StrCat(directory, "/", SegmentName(number));
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(segment.path));
  ASSIGN_OR_RETURN(segment.size, FileSize(segment.path));
  std::string bytes;
  RETURN_IF_ERROR(
      ReadBytes(file, segment.path, 0, kMaxSegmentHeaderBytes, bytes));
  size_t header_bytes = 0;
  ASSIGN_OR_RETURN(segment.header, SegmentHeader::Decode(bytes, header_bytes),
                   _ << segment.path);
  segment.header_bytes = header_bytes;
  if (segment.header.segment != number) {
    return absl::DataLossError(
        absl::StrCat(segment.path, ": is segment ", segment.header.segment));
  }
  return segment;
}

absl::StatusOr<bool> JournalReader::HasRecordsBehind(
    const std::string& directory, const JournalPlace& place) {
  ASSIGN_OR_RETURN(const std::set<uint64_t> numbers, SegmentsIn(directory));
  std::optional<Segment> before;
  for (auto number = numbers.lower_bound(place.segment);
       number != numbers.end(); ++number) {
    absl::StatusOr<Segment> segment = OpenSegment(directory, *number);
    if (absl::IsDataLoss(segment.status())) {
      ASSIGN_OR_RETURN(const bool has_records,
                       HasAnyRecord(directory, *number));
      if (has_records) return true;
      continue;
    }
    RETURN_IF_ERROR(segment.status());
    if (segment->header.journal != place.journal) continue;
    if (before.has_value()) {
      // What is behind was written by a process that had been replaced.
      if (*number == before->header.segment + 1) {
        before->size = std::min(before->size, segment->header.bytes_before);
      }
      ASSIGN_OR_RETURN(const bool has_records, before->HasRecords());
      if (has_records) return true;
    }
    before = *std::move(segment);
  }
  if (!before.has_value()) return false;
  return before->HasRecords();
}

absl::StatusOr<bool> JournalReader::Segment::HasRecords() const {
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(path));
  return HasRecord(file, path, header_bytes, size, /*record=*/1);
}

absl::StatusOr<JournalReader> JournalReader::Open(
    const std::string& directory, const JournalOwner& owner,
    const std::optional<JournalPlace>& place) {
  ASSIGN_OR_RETURN(const std::set<uint64_t> numbers, SegmentsIn(directory));
  const uint64_t first = place.has_value() ? place->segment : 1;
  auto number = numbers.find(first);
  if (number == numbers.end()) {
    return absl::NotFoundError(absl::StrCat(
        directory, ": has no segment ", first,
        numbers.empty()
            ? "; it is empty"
            : absl::StrCat("; the first one is ", *numbers.begin())));
  }
  JournalReader reader(directory);
  for (; number != numbers.end() && reader.rest_.ok(); ++number) {
    absl::StatusOr<Segment> segment = OpenSegment(directory, *number);
    if (reader.segments_.empty()) {
      RETURN_IF_ERROR(segment.status());
      const SegmentHeader& header = segment->header;
      if (header.owner != owner ||
          (place.has_value() && header.journal != place->journal)) {
        return absl::NotFoundError(absl::StrCat(
            segment->path, ": is of another run, layout or journal (run ",
            header.owner.run_id, ")"));
      }
      reader.segments_.push_back(*std::move(segment));
      continue;
    }
    // A process that ended while it made a segment has no record in it.
    const bool is_last = std::next(number) == numbers.end();
    if (is_last && absl::IsDataLoss(segment.status())) {
      ASSIGN_OR_RETURN(const bool has_records,
                       HasAnyRecord(directory, *number));
      if (!has_records) break;
    }
    reader.rest_ =
        segment.ok() ? reader.Join(*std::move(segment)) : segment.status();
    if (!reader.rest_.ok() && !absl::IsDataLoss(reader.rest_)) {
      return reader.rest_;
    }
  }
  reader.next_record_ = reader.segments_.front().header.first_record;
  return reader;
}

absl::Status JournalReader::Join(Segment next) {
  Segment& before = segments_.back();
  if (next.header.segment != before.header.segment + 1 ||
      next.header.owner != before.header.owner ||
      next.header.journal != before.header.journal) {
    return Damaged(next.path, 0,
                   "a segment that does not follow the one before");
  }
  if (next.header.bytes_before > before.size) {
    return Damaged(before.path, before.size, "the end is missing");
  }
  before.size = next.header.bytes_before;
  segments_.push_back(std::move(next));
  return absl::OkStatus();
}

absl::Status JournalReader::Read(
    Kept kept, absl::FunctionRef<absl::Status(absl::string_view)> visit) {
  for (const Segment& segment : segments_) {
    segment_ = segment.header.segment;
    end_ = segment.header_bytes;
    if (segment.header.first_record != next_record_) {
      return Damaged(segment.path, 0,
                     absl::StrCat("record ", segment.header.first_record,
                                  " where ", next_record_, " belongs,"));
    }
    RETURN_IF_ERROR(
        ReadSegment(segment, &segment == &segments_.back(), kept, visit));
  }
  return rest_;
}

absl::Status JournalReader::ReadSegment(
    const Segment& segment, bool is_newest, Kept kept,
    absl::FunctionRef<absl::Status(absl::string_view)> visit) {
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(segment.path));
  uint64_t at = segment.header_bytes;
  std::string bytes;
  absl::Status outcome;
  while (at < segment.size) {
    const uint64_t left = segment.size - at;
    RETURN_IF_ERROR(ReadBytes(file, segment.path, at,
                              std::min<uint64_t>(left, RecordHeader::kBytes),
                              bytes));
    std::optional<RecordHeader> header;
    if (bytes.size() == RecordHeader::kBytes) {
      header = RecordHeader::Decode(bytes.data());
    }
    const bool is_cut =
        left < RecordHeader::kBytes ||
        (header.has_value() && header->length > left - RecordHeader::kBytes);
    bool is_whole =
        header.has_value() && header->record == next_record_ && !is_cut;
    if (is_whole) {
      RETURN_IF_ERROR(ReadBytes(file, segment.path, at + RecordHeader::kBytes,
                                header->length, bytes));
      is_whole = bytes.size() == header->length &&
                 MaskCrc(Crc32cOf(bytes)) == header->data_crc;
    }
    if (is_whole) {
      outcome = visit(bytes);
      if (!outcome.ok()) break;
      at += RecordHeader::kBytes + header->length;
      ++next_record_;
      end_ = at;
      continue;
    }
    // What a loss of power leaves of a record that was being written.
    bool is_end = is_newest && (is_cut || kept == Kept::kOnDisk);
    if (is_end) {
      ASSIGN_OR_RETURN(const bool has_later,
                       HasRecord(file, segment.path, at + 1, segment.size,
                                 next_record_ + 1));
      is_end = !has_later;
    }
    if (!is_end) outcome = Damaged(segment.path, at, "a damaged record");
    break;
  }
  // A writer that was killed may not have done it, and a duplicate of what was
  // read is acknowledged at once.
  if (kept == Kept::kOnDisk && fdatasync(file.get()) != 0) {
    return ReadError(errno, "fdatasync", segment.path);
  }
  return outcome;
}

std::vector<SegmentHeader> JournalReader::Headers() const {
  std::vector<SegmentHeader> headers;
  for (const Segment& segment : segments_) headers.push_back(segment.header);
  return headers;
}

absl::StatusOr<SegmentHeader> JournalReader::GoOn(int64_t progress) const {
  ASSIGN_OR_RETURN(const std::set<uint64_t> numbers, SegmentsIn(directory_));
  for (const uint64_t number : numbers) {
    if (number <= segment_) continue;
    const std::string name = SegmentName(number);
    RETURN_IF_ERROR(Rename(absl::StrCat(directory_, "/", name),
                           absl::StrCat(directory_, "/", UnreadName(name))));
  }
  SegmentHeader next = segments_.front().header;
  next.segment = segment_ + 1;
  next.first_record = next_record_;
  next.bytes_before = end_;
  next.progress = progress;
  return next;
}

}  // namespace parasol
