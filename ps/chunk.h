#ifndef PARASOL_PS_CHUNK_H_
#define PARASOL_PS_CHUNK_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ml/optimizer/optimizer.h"
#include "ps/array_pool.h"
#include "ps/float_runs.h"

namespace parasol {

// What a chunk held at one moment; stays as it was while the chunk goes on.
struct ChunkContents {
  // Updates that its elements have had.
  int64_t updates = 0;
  ArrayRef value;
  // As many as the optimizer has slot names, each of value's size.
  std::vector<ArrayRef> slots;
};

// Up to kChunkElements consecutive elements of a part: the unit of locking and
// of copying on write. An array that somebody refers to is never written to:
// the update goes to another one, which takes its place. Thread-safe.
class Chunk {
 public:
  explicit Chunk(ChunkContents contents) : contents_(std::move(contents)) {}

  size_t size() const { return size_; }

  // Applies the next size() elements of `gradient`, which must be there.
  void Apply(const Optimizer& optimizer, FloatRuns& gradient, ArrayPool& pool)
      ABSL_LOCKS_EXCLUDED(mu_);

  ArrayRef Value() const ABSL_LOCKS_EXCLUDED(mu_);
  ChunkContents Contents() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void MakeSlotsUnique(ArrayPool& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  ChunkContents contents_ ABSL_GUARDED_BY(mu_);
  const size_t size_ = contents_.value.size();
};

}  // namespace parasol

#endif  // PARASOL_PS_CHUNK_H_
