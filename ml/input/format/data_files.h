#ifndef PARASOL_ML_INPUT_FORMAT_DATA_FILES_H_
#define PARASOL_ML_INPUT_FORMAT_DATA_FILES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/file/stored_files.h"

namespace parasol {

// The bytes of a data set's file, unpacked.
struct DataFile {
  std::string path = {};
  std::string bytes = {};
  bool is_whole = true;  // false: the file goes on behind the bytes
};

// The files of a data set, read one after the other: all of them, or for a
// sample the first bytes of some.
class DataFiles {
 public:
  // Returns the files that FindFiles() finds, which are brought to this machine
  // if all of them are read. `sample_bytes`: about as many
  // bytes are read of all together; of more than four files that have more than
  // that, four are read, the first and the last one among them. 0: everything.
  static absl::StatusOr<DataFiles> Find(const std::string& data_dir,
                                        absl::Span<const std::string> patterns,
                                        absl::string_view field,
                                        int64_t sample_bytes);

  // True if a sample of the files is read.
  bool is_limited() const { return is_limited_; }
  // Bytes of all files as they were found, packed or not.
  uint64_t stored_bytes() const { return stored_bytes_; }

  // The files, of a sample the ones that are read.
  const std::vector<std::string>& paths() const { return paths_; }
  // Path of the first file.
  const std::string& first() const { return paths_.front(); }
  bool HasNext() const { return next_ < paths_.size(); }

  // Reads the next file, of a sample no more than its share, of others no more
  // than `most` bytes; `is_text`: it is one of lines.
  //   InvalidArgument  it is of another format (known_format.h), or a sample
  //                    does not fit the memory.
  //   any other        as for ReadWholeFile().
  absl::StatusOr<DataFile> ReadNext(
      bool is_text, uint64_t most = std::numeric_limits<uint64_t>::max());

  // Opens the next file as one of `files`, where it stays on the disk. Only if
  // all files are read.
  //   any  as for ReadNext() and StoredFiles::Open().
  absl::StatusOr<StoredFile> OpenNext(bool is_text, StoredFiles& files);

  // True if there are bytes that were not, or will not be, read.
  bool is_sample() const { return is_sample_; }

 private:
  DataFiles(FoundFiles found, int64_t sample_bytes);

  std::vector<std::string> paths_;
  uint64_t stored_bytes_;
  size_t next_ = 0;
  int64_t left_ = 0;     // bytes, of a sample
  bool is_limited_;      // false: everything is read
  bool is_cut_ = false;  // files share what is left
  bool is_sample_ = false;
};

// Reads a file as DataFiles::ReadNext() does, up to `max_bytes`.
absl::StatusOr<DataFile> ReadDataFile(const std::string& path, bool is_text,
                                      size_t max_bytes);

// Returns OK if a file with these first bytes may be a data set's.
//   InvalidArgument  it is of another format.
absl::Status CheckFormat(const std::string& path, absl::string_view start,
                         bool is_text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_DATA_FILES_H_
