#include "storage/tier/tier_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "base/work_helpers.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// Threads that read: as many reads as a disk has under way. They do nothing
// else, so cores are no limit.
constexpr size_t kReaders = 32;

class UnnamedTierFile : public TierFile {
 public:
  UnnamedTierFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::Status Write(uint64_t offset,
                     absl::Span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written =
          pwrite(descriptor_.get(), bytes.data(), bytes.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FileError(errno, "write rows to", path_);
      // What is left of a write past the page cache must be whole blocks.
      const size_t whole = written / kBlockBytes * kBlockBytes;
      if (whole == 0) return FileError(ENOSPC, "write rows to", path_);
      offset += whole;
      bytes.remove_prefix(whole);
    }
    return absl::OkStatus();
  }

  absl::Status Read(absl::Span<const Reading> readings) override {
    if (readings.size() == 1) return ReadOne(readings[0]);
    absl::Mutex mu;
    absl::Status status;
    readers_.ForEach(readings.size(), [&](size_t i) {
      const absl::Status read = ReadOne(readings[i]);
      if (read.ok()) return;
      absl::MutexLock lock(&mu);
      status.Update(read);
    });
    absl::MutexLock lock(&mu);
    return status;
  }

 private:
  absl::Status ReadOne(const Reading& reading) const {
    const size_t bytes = reading.out.size();
    for (size_t done = 0; done < bytes;) {
      const ssize_t got = pread(descriptor_.get(), reading.out.data() + done,
                                bytes - done, reading.offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(errno, "read rows from", path_);
      if (got == 0) {
        return absl::UnavailableError(absl::StrCat(
            path_, ": the rows of a sparse table end at byte ",
            reading.offset + done,
            "; the disk is damaged: choose another one with --tier_dir"));
      }
      done += got;
    }
    return absl::OkStatus();
  }

  const std::string path_;  // the name that the file had
  const Descriptor descriptor_;
  WorkHelpers readers_{kReaders};
};

}  // namespace

absl::StatusOr<std::unique_ptr<TierFile>> OpenTierFile(
    const std::string& directory) {
  // A file system in memory refuses O_DIRECT.
  for (const int flags : {O_CLOEXEC | O_DIRECT, O_CLOEXEC}) {
    std::string path = absl::StrCat(directory, "/parasol-tier-XXXXXX");
    Descriptor descriptor(mkostemp(path.data(), flags));
    if (!descriptor.is_open() && errno == EINVAL) {
      // Some have made the file before they refuse.
      unlink(path.c_str());
      continue;
    }
    if (!descriptor.is_open()) {
      return FileError(errno, "make a file for rows in", directory);
    }
    if (unlink(path.c_str()) != 0) return FileError(errno, "unlink", path);
    return std::make_unique<UnnamedTierFile>(std::move(path),
                                             std::move(descriptor));
  }
  return FileError(EINVAL, "make a file for rows in", directory);
}

}  // namespace parasol
