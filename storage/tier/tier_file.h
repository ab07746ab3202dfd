#ifndef PARASOL_STORAGE_TIER_TIER_FILE_H_
#define PARASOL_STORAGE_TIER_TIER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// The disk as a RowLog sees it: one file, which is written in large pieces and
// read in small ones. Offsets, sizes and addresses are multiples of
// kBlockBytes. Thread-safe, but for a write to bytes that are read.
class TierFile {
 public:
  static constexpr size_t kBlockBytes = 4096;

  struct Reading {
    uint64_t offset = 0;
    absl::Span<std::byte> out = {};
  };

  virtual ~TierFile() = default;

  //   ResourceExhausted  the disk is full.
  //   Unavailable        the disk refuses.
  virtual absl::Status Write(uint64_t offset,
                             absl::Span<const std::byte> bytes) = 0;

  // Carries out all readings, side by side.
  //   Unavailable  the disk refuses, or the file ends before.
  virtual absl::Status Read(absl::Span<const Reading> readings) = 0;
};

// Makes a file in `directory` and takes its name away: it is gone as soon as
// the object or the process is. It goes past the system's page cache where the
// file system can do that: what rows take is then what RowLog says.
// Reads are carried out by io_uring, or by threads where the kernel has none,
// or for a test.
//   NotFound, PermissionDenied, …  the directory can't be used: names it.
enum class ReadWith { kRings, kThreads };
absl::StatusOr<std::unique_ptr<TierFile>> OpenTierFile(
    const std::string& directory, ReadWith read_with = ReadWith::kRings);

// Memory that a TierFile can read and write. Move-only.
class BlockMemory {
 public:
  BlockMemory() = default;
  // Allocates `bytes` of any value, rounded up to whole blocks.
  explicit BlockMemory(size_t bytes)
      : size_((bytes + TierFile::kBlockBytes - 1) / TierFile::kBlockBytes *
              TierFile::kBlockBytes),
        bytes_(static_cast<std::byte*>(
            std::aligned_alloc(TierFile::kBlockBytes, size_))) {}

  std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  size_t size_ = 0;
  std::unique_ptr<std::byte[], Free> bytes_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_TIER_FILE_H_
