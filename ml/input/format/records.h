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
// One thread fills it; any thread may read it afterwards.
class Records {
 public:
  // Kind of the files' bytes. Errors in a text name a line as well as an
  // offset.
  enum class Content { kBinary, kText };

  // Largest record, in bytes. Add() takes a longer one as broken.
  static constexpr size_t kMaxRecordBytes = size_t{1} << 30;

  explicit Records(Content content) : content_(content) {}

  // Adds a file and returns its bytes, which stay at that address. Records
  // added from now on are parts of them.
  absl::string_view AddFile(std::string path, std::string bytes);

  // Adds a record of the file that was added last.
  void Add(size_t offset, size_t length);
  // Adds a record that is known to be corrupt; `what` says why.
  void AddBroken(size_t offset, size_t length, std::string what);

  // Notes that the files have more than was added.
  void MarkSample() { is_sample_ = true; }
  bool is_sample() const { return is_sample_; }

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  // Number of each file's first record, then size().
  std::vector<int64_t> file_starts() const;

  absl::string_view operator[](int64_t record) const {
    return absl::string_view(FileOf(record).bytes)
        .substr(offsets_[record], lengths_[record]);
  }
  // Has the processor fetch the record's first kPrefetchedBytes.
  static constexpr size_t kPrefetchedBytes = 512;
  void Prefetch(int64_t record) const {
    const absl::string_view bytes = (*this)[record].substr(0, kPrefetchedBytes);
    constexpr size_t kLineBytes = 64;
    for (size_t at = 0; at < bytes.size(); at += kLineBytes) {
      __builtin_prefetch(bytes.data() + at);
    }
  }

  // Returns OK unless the record came through AddBroken().
  absl::Status CheckWhole(int64_t record) const;

  // Returns OK, or the error of the first record that came through AddBroken().
  absl::Status CheckAllWhole() const;

  // Returns DataLoss: "<path> line <n> at byte <offset>: <what>". The offset is
  // in the unpacked bytes; `inside` is an offset in the record.
  absl::Status Corrupt(int64_t record, size_t inside,
                       absl::string_view what) const;

 private:
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

  const Content content_;
  bool is_sample_ = false;
  std::deque<File> files_;  // never move, so views of their bytes stay valid
  std::vector<uint64_t> offsets_;  // offsets in the file
  std::vector<uint32_t> lengths_;
  std::map<int64_t, std::string> broken_;  // reasons by record
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_RECORDS_H_
