#ifndef PARASOL_STORAGE_JOURNAL_JOURNAL_READER_H_
#define PARASOL_STORAGE_JOURNAL_JOURNAL_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/journal_writer.h"
#include "storage/shard_index.h"

namespace parasol {

// The segments of a shard's journal that follow a checkpoint, in order.
class JournalReader {
 public:
  // Opens the journal in `directory` from `place` on, or from its beginning if
  // there is no checkpoint (nullopt).
  //   NotFound            there is no journal of this owner that begins there;
  //                       the message says what is there instead.
  //   DataLoss            the first segment's header is damaged.
  //   FailedPrecondition  a version that is not known here.
  //   Unavailable         the file system refuses.
  static absl::StatusOr<JournalReader> Open(
      const std::string& directory, const JournalOwner& owner,
      const std::optional<JournalPlace>& place);

  // Returns true if the journal in `directory` has records that follow `place`,
  // or damage that may hide some; false without a journal. For those who do not
  // read it.
  //   Unavailable  the file system refuses.
  static absl::StatusOr<bool> HasRecordsBehind(const std::string& directory,
                                               const JournalPlace& place);

  // Calls `visit` with the data of each record, in order, which are valid in
  // the call. The end of the newest segment is where its writer was stopped: a
  // record that was cut off there was not acknowledged. `kept`: as it was
  // written; without kOnDisk only a record that is too short is one.
  //   DataLoss     damage before that, or a segment is missing; names the file
  //                and the byte. What was visited is all that precedes it.
  //   Unavailable  the file system refuses.
  //   any other    the first error that `visit` returns.
  // With kOnDisk, what was visited is on the disk.
  absl::Status Read(Kept kept,
                    absl::FunctionRef<absl::Status(absl::string_view)> visit);

  // Returns, after Read(), the header of the segment that a writer goes on
  // with, right behind the last record that was visited. Segments behind that,
  // which can't be read, get names that no reader looks at. Fails as
  // durable_file.h says.
  absl::StatusOr<SegmentHeader> GoOn(int64_t progress) const;
  // Returns the headers of the segments that are there, in order.
  std::vector<SegmentHeader> Headers() const;
  // Returns, after Read(), the number of records that were visited.
  uint64_t records() const {
    return next_record_ - segments_.front().header.first_record;
  }

 private:
  struct Segment {
    std::string path;
    SegmentHeader header;
    uint64_t header_bytes = 0;
    uint64_t size = 0;  // the bytes of it that belong to the journal

    absl::StatusOr<bool> HasRecords() const;
  };

  explicit JournalReader(std::string directory)
      : directory_(std::move(directory)) {}

  static absl::StatusOr<Segment> OpenSegment(const std::string& directory,
                                             uint64_t number);
  // Adds the segment that follows.
  //   DataLoss  it does not follow.
  absl::Status Join(Segment next);
  absl::Status ReadSegment(
      const Segment& segment, bool is_newest, Kept kept,
      absl::FunctionRef<absl::Status(absl::string_view)> visit);

  std::string directory_;
  std::vector<Segment> segments_;
  absl::Status rest_;  // why there are not more of them; OK as a rule
  // Place to which reading has come.
  uint64_t next_record_ = 1;
  uint64_t segment_ = 0;
  uint64_t end_ = 0;  // the byte in the segment
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_JOURNAL_JOURNAL_READER_H_
