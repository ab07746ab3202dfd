#ifndef PARASOL_PS_DENSE_STEP_SUM_H_
#define PARASOL_PS_DENSE_STEP_SUM_H_

#include <cstddef>
#include <map>
#include <memory>

#include "cluster/replica_sum/held_memory.h"
#include "cluster/rows/row_memory.h"
#include "ps/dense/array_pool.h"
#include "ps/dense/received_gradient.h"

namespace parasol {

// The gradients of one synchronous step of one chunk. They are added in the
// ascending order of their replicas, so that their sum has the same bits
// whatever the order of arrival. A gradient is added at once if all lower
// replicas' are in the sum; otherwise it is held, as float32, until they are.
// The memory of held gradients is limited; the sum's is not counted here. Not
// thread-safe.
class StepSum {
 public:
  // Returns true if there is memory for a gradient of `size` elements, or if it
  // needs none because it is the next one in order. `memory` may be null: no
  // limit.
  bool HasRoom(int replica, size_t size, const RowMemory* memory) const;

  // Adds the next `size` elements of `gradient`, which must have them; `size`
  // is the same for all. `replica` must not have been added.
  void Add(int replica, size_t size, GradientReader& gradient, ArrayPool& pool,
           const std::shared_ptr<RowMemory>& memory);

  // Returns the mean of the gradients that were added, at least one. The sum is
  // empty afterwards.
  ArrayRef TakeMean();

  void Clear();

 private:
  struct Held {
    ArrayRef gradient;
    HeldMemory memory;
  };

  void AddHeld(const ArrayRef& held);

  ArrayRef sum_;  // the sum of replicas [0, next_replica_)
  int next_replica_ = 0;
  size_t count_ = 0;
  std::map<int, Held> held_;
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_STEP_SUM_H_
