#ifndef PARASOL_ML_INPUT_RECORD_RECORD_BLOCKS_H_
#define PARASOL_ML_INPUT_RECORD_RECORD_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/record/block_cache.h"
#include "ml/input/record/file_window.h"
#include "ml/input/record/record_format.h"

namespace parasol {

// The records of files that stay on a disk, numbered through all of them. A
// file is cut into blocks behind records; in memory are 48 bytes for each block
// and the blocks that were used last. When a block is read its records are
// found again, by the code that found them first.
//
// One thread adds files; any thread may read afterwards.
class RecordBlocks {
 public:
  // `has_lines`: errors name lines.
  RecordBlocks(std::shared_ptr<RecordFormat> format, bool has_lines,
               const SetMemory& memory);

  // Goes through the file once, in bounded memory, and adds its records.
  //   DataLoss   the file has changed, or has a line of more than a GiB.
  //   any other  as for RecordFormat::Begin() and StoredFile::Read().
  absl::Status AddFile(StoredFile file);

  int64_t size() const { return size_; }
  // Number of each file's first record, then size().
  std::vector<int64_t> file_starts() const;
  // Returns OK, or the error of the first broken record.
  const absl::Status& first_broken() const { return first_broken_; }

  // Returns the number of the block that has the record.
  size_t NumberOf(int64_t record) const;

  // Returns a block.
  //   DataLoss, Unavailable  as for StoredFile::Read(): names the file and the
  //                          offset.
  absl::StatusOr<std::shared_ptr<const RecordBlock>> BlockOf(
      size_t number) const;

  // Number of blocks that each reader may hold, of most_held_bytes() at most:
  // an eighth of the cache, but not more than the readers of a set are likely
  // to have in common.
  size_t held() const;
  size_t most_held_bytes() const { return 4 * memory_.block_bytes; }

  // Returns DataLoss: "<path> line <n> at byte <offset>: <what>", as
  // Records::Corrupt() does.
  absl::Status Corrupt(const RecordBlock& block, int64_t record, size_t inside,
                       absl::string_view what) const;

  // Number of blocks that were read since the files were added.
  int64_t blocks_read() const { return cache_.loads(); }

 private:
  struct File {
    StoredFile stored;
    int64_t first_record = 0;
    size_t first_block = 0;
  };
  struct BlockStart {
    uint64_t offset = 0;
    int64_t lines_before = 0;
  };

  // Returns how many bytes of blocks the cache is to keep.
  size_t CacheBytes() const;
  void StartBlock(uint64_t offset);
  // Adds the records of the file that was added last, from `at` on.
  absl::Status Index(size_t at, FileWindow& window);
  void CountLines(const FilePart& part, size_t end);
  absl::Status CorruptAt(const File& file, uint64_t offset, int64_t line,
                         absl::string_view what) const;
  absl::StatusOr<RecordBlock> Load(size_t number) const;
  absl::Status Fill(const File& file, size_t end, RecordBlock& block) const;
  absl::Status OtherRecords(const File& file, const RecordBlock& block) const;

  const std::shared_ptr<RecordFormat> format_;
  const bool has_lines_;
  const SetMemory memory_;
  std::vector<File> files_;
  // The first record of each block, and its place.
  std::vector<int64_t> first_records_;
  std::vector<BlockStart> starts_;
  int64_t size_ = 0;
  absl::Status first_broken_;
  // Line ends of the file that is being added, up to an offset.
  int64_t lines_ = 0;
  size_t counted_to_ = 0;
  mutable BlockCache cache_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_RECORD_BLOCKS_H_
