#ifndef PARASOL_ML_INPUT_FILE_STORED_FILE_H_
#define PARASOL_ML_INPUT_FILE_STORED_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "ml/input/file/temporary_file.h"
#include "ml/input/object/remote_file.h"

namespace parasol {

// The bytes of a data set's file that stay on a disk, read at any place.
// Thread-safe; move-only.
class StoredFile {
 public:
  // Opens a plain file. `keep_open`: the file may be renamed or deleted
  // afterwards; otherwise each Read() opens it again, and no descriptor is
  // held. An object that BringFiles() has not brought is read in its store.
  //   NotFound         there is no such file.
  //   InvalidArgument  it is a directory, a pipe, …
  //   any other        the system's error; as for ObjectCache::Open().
  static absl::StatusOr<StoredFile> Open(const std::string& path,
                                         bool keep_open);

  // Returns the bytes from `offset` on that `unpacked` now has, which the file
  // at `path` has packed.
  static StoredFile Unpacked(std::string path,
                             std::shared_ptr<const TemporaryFile> unpacked,
                             uint64_t offset);

  // Returns `size` bytes of the file from `offset` on, which it has, as a file.
  static StoredFile Part(StoredFile file, uint64_t offset, uint64_t size);

  // Returns what messages say of a place: an offset in the whole file.
  uint64_t ShownOffset(uint64_t offset) const { return shown_ + offset; }

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Fills `out` with the bytes from `offset` on, which are below size().
  //   DataLoss     the file is gone, or has changed since it was opened.
  //   Unavailable  the disk or a store refuses, or no descriptor is left:
  //                another try may succeed.
  // Both name the file and the offset.
  absl::Status Read(uint64_t offset, absl::Span<char> out) const;

 private:
  // Facts that show that a file is another one, or has changed.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::timespec changed = {};

    friend bool operator==(const Identity& a, const Identity& b) {
      return a.device == b.device && a.inode == b.inode && a.bytes == b.bytes &&
             a.changed.tv_sec == b.changed.tv_sec &&
             a.changed.tv_nsec == b.changed.tv_nsec;
    }
  };

  StoredFile() = default;
  static absl::StatusOr<StoredFile> OpenLocal(const std::string& path,
                                              const std::string& local,
                                              bool keep_open);
  static Identity IdentityOf(const struct stat& about);
  absl::Status ReadFrom(int descriptor, uint64_t offset,
                        absl::Span<char> out) const;
  // Returns what an error of the system, at an offset, is to the caller.
  absl::Status CantRead(int error, uint64_t offset) const;
  absl::Status Lost(uint64_t offset, absl::string_view what) const;

  std::string path_;
  std::string local_;   // path on this machine
  uint64_t begin_ = 0;  // first byte, in the file that is open
  uint64_t shown_ = 0;  // offset in the file that they are a part of
  uint64_t size_ = 0;
  Descriptor descriptor_;  // none: unpacked, or opened by each Read()
  std::shared_ptr<const TemporaryFile> unpacked_;  // null: a plain file
  std::shared_ptr<RemoteFile> remote_;             // null: on this machine
  Identity identity_;                              // facts of a plain file
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_STORED_FILE_H_
