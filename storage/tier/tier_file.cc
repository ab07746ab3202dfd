#include "storage/tier/tier_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "base/work_helpers.h"
#include "storage/durable_file.h"
#include "storage/tier/read_ring.h"

namespace parasol {
namespace {

// Threads that read where there is no ReadRing: as many reads as a disk has
// under way. They do nothing else, so cores are no limit.
constexpr size_t kReaders = 32;

// True if this process may not write a file of so many bytes.
bool IsBeyondLimit(uint64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

class UnnamedTierFile : public TierFile {
 public:
  UnnamedTierFile(std::string path, Descriptor descriptor, bool has_rings)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {
    std::unique_ptr<ReadRing> ring =
        has_rings ? ReadRing::CreateIfThere() : nullptr;
    if (ring == nullptr) {
      readers_ = std::make_unique<WorkHelpers>(kReaders);
    } else {
      rings_.push_back(std::move(ring));
    }
  }

  absl::Status Write(uint64_t offset,
                     absl::Span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written =
          pwrite(descriptor_.get(), bytes.data(), bytes.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      const int error = errno;
      if (written < static_cast<ssize_t>(kBlockBytes) &&
          IsBeyondLimit(offset + bytes.size())) {
        // Past the page cache the limit is "Invalid argument", or a part of a
        // block.
        return FileError(EFBIG, "write rows to", path_);
      }
      if (written < 0) return FileError(error, "write rows to", path_);
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
    if (readers_ != nullptr) return ReadOnThreads(readings);
    std::unique_ptr<ReadRing> ring = TakeRing();
    if (ring == nullptr) return ReadInTurn(readings);
    const std::vector<size_t> left = ring->Read(descriptor_.get(), readings);
    GiveRing(std::move(ring));
    // What is wrong with them, if anything is, this says.
    for (const size_t i : left) RETURN_IF_ERROR(ReadOne(readings[i]));
    return absl::OkStatus();
  }

 private:
  // Returns a ring that nobody uses, a new one if need be; null: there is none.
  std::unique_ptr<ReadRing> TakeRing() ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (!rings_.empty()) {
        std::unique_ptr<ReadRing> ring = std::move(rings_.back());
        rings_.pop_back();
        return ring;
      }
    }
    return ReadRing::CreateIfThere();
  }
  void GiveRing(std::unique_ptr<ReadRing> ring) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    rings_.push_back(std::move(ring));
  }

  absl::Status ReadOnThreads(absl::Span<const Reading> readings) {
    absl::Mutex mu;
    absl::Status status;
    readers_->ForEach(readings.size(), [&](size_t i) {
      const absl::Status read = ReadOne(readings[i]);
      if (read.ok()) return;
      absl::MutexLock lock(&mu);
      status.Update(read);
    });
    absl::MutexLock lock(&mu);
    return status;
  }
  absl::Status ReadInTurn(absl::Span<const Reading> readings) const {
    for (const Reading& reading : readings) RETURN_IF_ERROR(ReadOne(reading));
    return absl::OkStatus();
  }
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
  std::unique_ptr<WorkHelpers> readers_;  // null: there are rings
  absl::Mutex mu_;
  // Rings that nobody uses.
  std::vector<std::unique_ptr<ReadRing>> rings_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<TierFile>> OpenTierFile(
    const std::string& directory, ReadWith read_with) {
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
    return std::make_unique<UnnamedTierFile>(
        std::move(path), std::move(descriptor), read_with == ReadWith::kRings);
  }
  return FileError(EINVAL, "make a file for rows in", directory);
}

}  // namespace parasol
