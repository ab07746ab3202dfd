#include "storage/tier/testing/memory_tier_file.h"

#include <algorithm>

namespace parasol {

absl::Status MemoryTierFile::Write(uint64_t offset,
                                   absl::Span<const std::byte> bytes) {
  absl::MutexLock lock(&mu_);
  const uint64_t end = offset + bytes.size();
  if (end > capacity_) return absl::ResourceExhaustedError("the disk is full");
  if (end > bytes_.size()) bytes_.resize(end);
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + offset);
  return absl::OkStatus();
}

absl::Status MemoryTierFile::Read(absl::Span<const Reading> readings) {
  absl::MutexLock lock(&mu_);
  for (const Reading& reading : readings) {
    if (reads_++ >= failing_read_) {
      return absl::UnavailableError("the disk refuses to read");
    }
    if (reading.offset + reading.out.size() > bytes_.size()) {
      return absl::UnavailableError("the file ends before");
    }
    std::copy_n(bytes_.begin() + reading.offset, reading.out.size(),
                reading.out.begin());
  }
  return absl::OkStatus();
}

void MemoryTierFile::SetCapacity(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  capacity_ = bytes;
}

void MemoryTierFile::FailReadAfter(int64_t reads) {
  absl::MutexLock lock(&mu_);
  failing_read_ = reads_ + reads;
}

void MemoryTierFile::Damage() {
  absl::MutexLock lock(&mu_);
  // Every record is hit: none is as large as that but in tests with few.
  for (size_t i = 0; i < bytes_.size(); i += 16) bytes_[i] ^= std::byte{1};
}

int64_t MemoryTierFile::reads() const {
  absl::MutexLock lock(&mu_);
  return reads_;
}

}  // namespace parasol
