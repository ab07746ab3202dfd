#ifndef PARASOL_PS_DENSE_STEP_SUM_H_
#define PARASOL_PS_DENSE_STEP_SUM_H_

#include <cstddef>
#include <map>

#include "ps/dense/array_pool.h"
#include "ps/dense/received_gradient.h"

namespace parasol {

// The gradients of one synchronous step of one chunk. They are added in the
// ascending order of their replicas, so that their sum has the same bits
// whatever the order of arrival. A gradient is added at once if all lower
// replicas' are in the sum; otherwise it is held, as float32, until they are.
// Not thread-safe.
class StepSum {
 public:
  // Adds the next `size` elements of `gradient`, which must have them; `size`
  // is the same for all. `replica` must not have been added.
  void Add(int replica, size_t size, GradientReader& gradient, ArrayPool& pool);

  // Returns the mean of the gradients that were added, at least one. The sum is
  // empty afterwards.
  ArrayRef TakeMean();

  void Clear();

 private:
  void AddHeld(const ArrayRef& held);

  ArrayRef sum_;  // the sum of replicas [0, next_replica_)
  int next_replica_ = 0;
  size_t count_ = 0;
  std::map<int, ArrayRef> held_;
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_STEP_SUM_H_
