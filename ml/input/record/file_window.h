#ifndef PARASOL_ML_INPUT_RECORD_FILE_WINDOW_H_
#define PARASOL_ML_INPUT_RECORD_FILE_WINDOW_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/record/record_format.h"

namespace parasol {

// A part of a file on disk that is in memory, and moves through it. Borrows the
// file. Not thread-safe; errors as for StoredFile::Read().
class FileWindow {
 public:
  // Begins at `offset`, empty.
  FileWindow(const StoredFile& file, size_t offset)
      : file_(file), offset_(offset) {}

  FilePart part() const {
    return {.bytes = {bytes_.get(), size_},
            .offset = offset_,
            .file_bytes = file_.size()};
  }
  size_t end() const { return offset_ + size_; }

  // Drops the bytes before `at`, which may lie behind the end.
  void DropBefore(size_t at);
  // Reads on, up to `end` or the file's end.
  absl::Status ReadTo(size_t end);
  // Reads at least as many bytes again as there are, `at_least` or more, unless
  // the file ends.
  //   DataLoss  there are more than a record may have.
  absl::Status Grow(size_t at_least);

  // Bytes of memory that the window has.
  size_t capacity() const { return capacity_; }
  // Gives the bytes away, which part() tells.
  std::unique_ptr<const char[]> Take() && { return std::move(bytes_); }

 private:
  const StoredFile& file_;
  size_t offset_;
  size_t size_ = 0;
  size_t capacity_ = 0;
  std::unique_ptr<char[]> bytes_;  // bytes that were read; never zeros first
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_FILE_WINDOW_H_
