#ifndef PARASOL_STORAGE_JOURNAL_JOURNAL_FORMAT_H_
#define PARASOL_STORAGE_JOURNAL_JOURNAL_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The bytes of a journal: storage/FORMAT.md, "Journal".
namespace parasol {

// The owner of a journal: what is replayed must have been written for it.
struct JournalOwner {
  std::string run_id;
  uint64_t layout = 0;
  uint32_t shard = 0;
  uint32_t num_shards = 0;

  bool operator==(const JournalOwner&) const = default;
};

// The head of a segment, which is a file.
struct SegmentHeader {
  JournalOwner owner;
  uint64_t journal = 0;  // a random number, of all segments of a journal
  uint64_t segment = 0;  // 1, 2, …
  uint64_t first_record = 1;
  // The bytes of the segment before that belong to the journal. What its writer
  // has added later, because it did not know of its successor, does not.
  uint64_t bytes_before = 0;
  // Updates that the shard had at most when the segment was begun.
  int64_t progress = 0;

  std::string Encode() const;
  // `bytes` begin with a header. `size`: the number of its bytes.
  //   DataLoss            they do not, or it is damaged.
  //   FailedPrecondition  a version that is not known here.
  static absl::StatusOr<SegmentHeader> Decode(absl::string_view bytes,
                                              size_t& size);
};

inline constexpr size_t kMaxSegmentHeaderBytes = 4096;

// The head of a record, in front of its data.
struct RecordHeader {
  static constexpr size_t kBytes = 24;

  uint32_t length = 0;  // bytes of the data
  uint64_t record = 0;  // 1, 2, … over all segments
  uint32_t data_crc = 0;

  // Writes kBytes bytes.
  void Encode(char* out) const;
  // Returns nothing if the kBytes bytes are no head of a record.
  static std::optional<RecordHeader> Decode(const char* bytes);
};

// More than any message of a worker.
inline constexpr uint32_t kMaxRecordBytes = uint32_t{1} << 30;

// Returns the folder of a shard's journal, below the one that all journals are
// kept in: "journal/shard-00000-of-00002".
std::string JournalPath(absl::string_view directory, uint32_t shard,
                        uint32_t num_shards);
// Returns the name of a segment's file: "segment-000000000001".
std::string SegmentName(uint64_t segment);
// Returns the name of a segment's file that is put aside: no reader looks at
// it.
std::string UnreadName(absl::string_view segment_name);
bool IsUnreadName(absl::string_view name);
// Returns the segment whose file has this name.
std::optional<uint64_t> SegmentOfName(absl::string_view name);

}  // namespace parasol

#endif  // PARASOL_STORAGE_JOURNAL_JOURNAL_FORMAT_H_
