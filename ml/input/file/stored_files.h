#ifndef PARASOL_ML_INPUT_FILE_STORED_FILES_H_
#define PARASOL_ML_INPUT_FILE_STORED_FILES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/file/temporary_file.h"

namespace parasol {

// Opens the files of a set that stays on a disk. What is packed is unpacked,
// for all of them into one TemporaryFile. Not thread-safe.
class StoredFiles {
 public:
  // Opens a file, plain or gzip, to be read at any place.
  //   DataLoss, Unavailable  as for InputFile::Read().
  //   InvalidArgument        there is no room for the unpacked bytes.
  //   any other              as for InputFile::Open() and TemporaryFile.
  absl::StatusOr<StoredFile> Open(const std::string& path);

  // Opens a file as it is, packed or not. Errors as for StoredFile::Open().
  absl::StatusOr<StoredFile> OpenPlain(const std::string& path);

  // Takes the bytes of one more file, piece by piece; `path` is for messages.
  // Errors as for TemporaryFile.
  absl::Status Unpack(absl::string_view bytes);
  // Returns what was given to Unpack() since the last call.
  StoredFile TakeUnpacked(std::string path);

 private:
  std::shared_ptr<TemporaryFile> unpacked_;  // null: nothing was packed
  uint64_t taken_ = 0;                       // bytes of it that are files
  size_t plain_files_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_STORED_FILES_H_
