#include "ps/dense/step_sum.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol {
namespace {

// Hands the next `size` elements of `gradient` to `use`, run by run.
template <typename Use>
void ForEachRun(GradientReader& gradient, size_t size, Use use) {
  for (size_t done = 0; done < size;) {
    const ElementRuns::Run run = gradient.Next(size - done);
    CHECK_GT(run.count, 0u) << "the gradient ends at " << done;
    use(done, run);
    done += run.count;
  }
}

ArrayRef Copy(GradientReader& gradient, size_t size, ArrayPool& pool) {
  ArrayRef copy = pool.Allocate(size);
  ForEachRun(gradient, size, [&copy](size_t at, ElementRuns::Run run) {
    std::memcpy(copy.data() + at, run.data, run.count * sizeof(float));
  });
  return copy;
}

}  // namespace

bool StepSum::HasRoom(int replica, size_t size, const RowMemory* memory) const {
  return replica == next_replica_ || memory == nullptr ||
         size * sizeof(float) <= memory->free_bytes();
}

void StepSum::Add(int replica, size_t size, GradientReader& gradient,
                  ArrayPool& pool, const std::shared_ptr<RowMemory>& memory) {
  ++count_;
  if (replica != next_replica_) {
    held_[replica] = {.gradient = Copy(gradient, size, pool),
                      .memory = HeldMemory(memory, size * sizeof(float))};
    return;
  }
  if (!sum_) {
    sum_ = Copy(gradient, size, pool);
  } else {
    ForEachRun(gradient, size, [this](size_t at, ElementRuns::Run run) {
      AddTo({sum_.data() + at, run.count}, run.data);
    });
  }
  ++next_replica_;
  while (!held_.empty() && held_.begin()->first == next_replica_) {
    AddHeld(held_.begin()->second.gradient);
    held_.erase(held_.begin());
    ++next_replica_;
  }
}

ArrayRef StepSum::TakeMean() {
  for (const auto& [replica, held] : held_) AddHeld(held.gradient);
  DivideBy(sum_.span(), static_cast<float>(count_));
  ArrayRef mean = std::move(sum_);
  Clear();
  return mean;
}

void StepSum::Clear() {
  sum_ = ArrayRef();
  next_replica_ = 0;
  count_ = 0;
  held_.clear();
}

void StepSum::AddHeld(const ArrayRef& held) {
  if (!sum_) {
    sum_ = held;
  } else {
    AddTo(sum_.span(), reinterpret_cast<const std::byte*>(held.data()));
  }
}

}  // namespace parasol
