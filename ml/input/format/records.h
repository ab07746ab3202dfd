#ifndef PARASOL_ML_INPUT_FORMAT_RECORDS_H_
#define PARASOL_ML_INPUT_FORMAT_RECORDS_H_

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

namespace parasol {

// The records of a data set's files, numbered through all of them, in memory.
// Filled once, then read from any thread.
class Records {
 public:
  // A place in a text has a line as well as an offset.
  enum class Content { kBinary, kText };

  // Longer ones are refused by Add().
  static constexpr size_t kMaxRecordBytes = size_t{1} << 30;

  explicit Records(Content content) : content_(content) {}

  // The records that are added from now on are parts of `bytes`. Returns them:
  // they stay where they are.
  absl::string_view AddFile(std::string path, std::string bytes);

  // A record of the file that was added last.
  void Add(size_t offset, size_t length);
  // One of which it is known already that it can't be decoded, and why.
  void AddBroken(size_t offset, size_t length, std::string what);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  // Of each file the number of its first record, and then size().
  std::vector<int64_t> file_starts() const;

  absl::string_view operator[](int64_t record) const {
    return absl::string_view(FileOf(record).bytes)
        .substr(offsets_[record], lengths_[record]);
  }
  // OK unless it came through AddBroken().
  absl::Status CheckWhole(int64_t record) const;

  // OK unless something came through AddBroken(): its first.
  absl::Status CheckAllWhole() const;

  // DataLoss: "<path> line <n> at byte <offset>: <what>". The offset is one in
  // the unpacked bytes, and `inside` is one in the record.
  absl::Status Corrupt(int64_t record, size_t inside,
                       absl::string_view what) const;

 private:
  // Line ends before each block of the file; counted when first asked for.
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

  const Content content_;
  std::deque<File> files_;         // views of their bytes stay valid
  std::vector<uint64_t> offsets_;  // in the file
  std::vector<uint32_t> lengths_;
  std::map<int64_t, std::string> broken_;  // why, by record
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_RECORDS_H_
