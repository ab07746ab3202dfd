#ifndef PARASOL_STORAGE_CHECKED_FILE_H_
#define PARASOL_STORAGE_CHECKED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "proto/checkpoint.pb.h"
#include "storage/durable_file.h"

namespace parasol {

// Returns the crc32c of bytes whose crc32c is `first`, followed by
// `second_bytes` bytes whose crc32c is `second`. Takes about a microsecond.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

// A file of a checkpoint that is read piece by piece, in any order. Computes
// the crc32c of what is read, so that a file that is read whole is verified
// without a second reading. Thread-safe.
class CheckedFile {
 public:
  // Opens the file, which `file` describes as the manifest does.
  //   NotFound     there is none.
  //   DataLoss     it is no regular file, or has another size.
  //   Unavailable  the file system refuses.
  static absl::StatusOr<std::unique_ptr<CheckedFile>> Open(
      const std::string& path, const durable::CheckpointFile& file);

  // Reads `count` bytes from `offset` on.
  //   DataLoss     the file is shorter.
  //   Unavailable  the file system refuses.
  absl::Status Read(uint64_t offset, size_t count, char* out)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Reads what was not read before, and compares the crc32c of the whole file
  // with the manifest's.
  //   DataLoss  they differ.
  absl::Status Verify() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Number of bytes that were read at least once.
  uint64_t bytes_covered() const ABSL_LOCKS_EXCLUDED(mu_);
  // Number of bytes that all reads together have read.
  uint64_t bytes_read() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A range that was read, keyed by its first byte.
  struct Range {
    uint64_t end = 0;
    uint32_t crc = 0;
  };
  using Ranges = std::map<uint64_t, Range>;

  CheckedFile(std::string path, FileDescriptor descriptor,
              const durable::CheckpointFile& file)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        size_(file.bytes()),
        crc_(file.crc32c()) {}

  // Notes that `bytes` were read from `offset` on.
  void Cover(uint64_t offset, absl::string_view bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void Insert(uint64_t offset, absl::string_view bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the first range that was not read: [first, second). Empty if all
  // were.
  std::pair<uint64_t, uint64_t> FirstHole() const ABSL_LOCKS_EXCLUDED(mu_);

  const std::string path_;
  const FileDescriptor descriptor_;
  const uint64_t size_;
  const uint32_t crc_;

  mutable absl::Mutex mu_;
  Ranges ranges_ ABSL_GUARDED_BY(mu_);  // apart from each other, not adjacent
  uint64_t covered_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t read_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKED_FILE_H_
