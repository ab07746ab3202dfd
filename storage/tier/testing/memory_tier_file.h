#ifndef PARASOL_STORAGE_TIER_TESTING_MEMORY_TIER_FILE_H_
#define PARASOL_STORAGE_TIER_TESTING_MEMORY_TIER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "storage/tier/tier_file.h"

namespace parasol {

// A disk in memory that is full, refuses or damages when a test says so.
// Thread-safe.
class MemoryTierFile : public TierFile {
 public:
  absl::Status Write(uint64_t offset,
                     absl::Span<const std::byte> bytes) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Read(absl::Span<const Reading> readings) override
      ABSL_LOCKS_EXCLUDED(mu_);

  // Has writes beyond `bytes` fail as on a full disk.
  void SetCapacity(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Has the read that comes after `reads` others fail.
  void FailReadAfter(int64_t reads) ABSL_LOCKS_EXCLUDED(mu_);
  // Changes a bit of each block that has been written.
  void Damage() ABSL_LOCKS_EXCLUDED(mu_);
  int64_t reads() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::vector<std::byte> bytes_ ABSL_GUARDED_BY(mu_);
  uint64_t capacity_ ABSL_GUARDED_BY(mu_) = UINT64_MAX;
  int64_t reads_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t failing_read_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_TESTING_MEMORY_TIER_FILE_H_
