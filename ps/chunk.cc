#include "ps/chunk.h"

#include <algorithm>
#include <utility>

#include "absl/container/fixed_array.h"
#include "base/log.h"

namespace parasol {

void Chunk::Apply(const Optimizer& optimizer, FloatRuns& gradient,
                  ArrayPool& pool) {
  absl::MutexLock lock(&mu_);
  MakeSlotsUnique(pool);
  ArrayRef next =
      contents_.value.IsUnique() ? contents_.value : pool.Allocate(size_);
  absl::FixedArray<float*> slots(contents_.slots.size());
  for (size_t done = 0; done < size_;) {
    const FloatRuns::Run run = gradient.Next(size_ - done);
    CHECK_GT(run.count, 0u) << "the gradient ends at " << done;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i] = contents_.slots[i].data() + done;
    }
    optimizer.Apply(contents_.updates, {.count = run.count,
                                        .gradient = run.data,
                                        .value = contents_.value.data() + done,
                                        .new_value = next.data() + done,
                                        .slots = slots});
    done += run.count;
  }
  contents_.value = std::move(next);
  ++contents_.updates;
}

ArrayRef Chunk::Value() const {
  absl::MutexLock lock(&mu_);
  return contents_.value;
}

ChunkContents Chunk::Contents() const {
  absl::MutexLock lock(&mu_);
  return contents_;
}

void Chunk::MakeSlotsUnique(ArrayPool& pool) {
  for (ArrayRef& slot : contents_.slots) {
    if (slot.IsUnique()) continue;
    ArrayRef copy = pool.Allocate(size_);
    std::copy_n(slot.data(), size_, copy.data());
    slot = std::move(copy);
  }
}

}  // namespace parasol
