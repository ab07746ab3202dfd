#ifndef PARASOL_STORAGE_TENSOR_FILES_STAGED_FILE_H_
#define PARASOL_STORAGE_TENSOR_FILES_STAGED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/durable_file.h"

namespace parasol {

// Returns a name beside `path`, ending in ".new", that no other call returns
// and no other process uses.
std::string StagedNameOf(const std::string& path);

// A file that is written piece by piece and gets its name when it is complete:
// a reader finds the old file or the new one, also after a crash. Until then it
// has no name, so nothing stays of it without Commit(), also if the process is
// killed; where the file system has no such files it has a StagedNameOf(), and
// is removed by the destructor. Errors as in storage/durable_file.h. Move-only;
// not thread-safe.
class StagedFile {
 public:
  // Creates the file, and the directory in which it is.
  //   InvalidArgument  `path` is there and is no regular file, nor a link.
  static absl::StatusOr<StagedFile> Create(const std::string& path);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  absl::Status Append(absl::string_view bytes);
  // Writes over bytes that were appended before.
  absl::Status Overwrite(uint64_t offset, absl::string_view bytes);
  // Number of bytes that were appended.
  uint64_t size() const { return written_ + buffer_.size(); }

  // Fsyncs the file, gives it its name, and makes the name durable. Must be
  // called once, last.
  absl::Status Commit();

 private:
  StagedFile(std::string path, std::string staged_path, FileDescriptor file);
  absl::Status Flush();
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);

  std::string path_;
  std::string staged_path_;  // empty: it has no name
  FileDescriptor file_;
  std::string buffer_;    // appended, not written
  uint64_t written_ = 0;  // bytes before the buffer's
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_STAGED_FILE_H_
