#ifndef PARASOL_ML_INPUT_RECORD_RECORDS_H_
#define PARASOL_ML_INPUT_RECORD_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/record/record_blocks.h"
#include "ml/input/record/record_format.h"

namespace parasol {

// The records of a data set's files, numbered through all of them: in memory,
// or in files that stay on a disk (RecordBlocks). RecordReader reads them. One
// thread fills it; any thread may read it afterwards.
class Records {
 public:
  // Kind of the files' bytes. Errors in a text name a line as well as an
  // offset.
  enum class Content { kBinary, kText };

  // Records in memory.
  explicit Records(Content content) : content_(content) {}
  // Records of files that stay on a disk, found by `format`, which lives as
  // long as they do.
  Records(Content content, std::shared_ptr<RecordFormat> format,
          const SetMemory& memory);

  // Adds a file, in memory, and returns its bytes, which stay at that address.
  // Records added from now on are parts of them.
  absl::string_view AddFile(std::string path, std::string bytes);
  // Adds a record of the file that was added last.
  void Add(size_t offset, size_t length);
  // Adds a record that is known to be corrupt; `what` says why.
  void AddBroken(size_t offset, size_t length, std::string what);
  // Adds the records that `format` finds in the file that was added last, from
  // `begin` on. `is_cut`: the file goes on, and what is cut off at the end is
  // no record.
  void AddAll(const RecordFormat& format, size_t begin, bool is_cut);

  // Adds a file that stays on the disk, and all its records. Errors as for
  // RecordBlocks::AddFile().
  absl::Status AddStored(StoredFile file);

  // Notes that the files have more than was added.
  void MarkSample() { is_sample_ = true; }
  bool is_sample() const { return is_sample_; }

  int64_t size() const {
    return blocks_ == nullptr ? static_cast<int64_t>(offsets_.size())
                              : blocks_->size();
  }
  // Number of each file's first record, then size().
  std::vector<int64_t> file_starts() const;

  // Returns OK, or the error of the first record that is broken.
  absl::Status CheckAllWhole() const;

  // Null if the records are in memory.
  const RecordBlocks* blocks() const { return blocks_.get(); }

 private:
  friend class RecordReader;

  // Number of line ends before each block of the file; counted at the first
  // use.
  struct LineCounts {
    std::once_flag counted;
    std::vector<int64_t> before_block;
  };
  struct File {
    std::string path;
    std::string bytes;
    int64_t first_record;
    std::unique_ptr<LineCounts> lines;

    int64_t LineAt(size_t offset) const;
  };

  const File& FileOf(int64_t record) const;
  absl::string_view BytesOf(int64_t record) const {
    return absl::string_view(FileOf(record).bytes)
        .substr(offsets_[record], lengths_[record]);
  }
  absl::Status CheckWhole(int64_t record) const;
  absl::Status Corrupt(int64_t record, size_t inside,
                       absl::string_view what) const;

  const Content content_;
  bool is_sample_ = false;
  std::deque<File> files_;  // never move, so views of their bytes stay valid
  std::vector<uint64_t> offsets_;  // offsets in the file
  std::vector<uint32_t> lengths_;
  std::map<int64_t, std::string> broken_;  // reasons by record
  std::unique_ptr<RecordBlocks> blocks_;   // null: all is in memory
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_RECORDS_H_
