#ifndef PARASOL_LOOP_PER_REPLICA_H_
#define PARASOL_LOOP_PER_REPLICA_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// A value of each replica of this process: what a step has returned, or what
// is given to one. An error takes the place of all values.
template <typename T>
class PerReplica {
 public:
  explicit PerReplica(std::vector<T> values) : values_(std::move(values)) {}
  PerReplica(absl::Status error) : status_(std::move(error)) {}  // NOLINT

  // Why there are no values; OK if there are.
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // The values of the replicas of this process, in their order, as
  // tf.distribute's experimental_local_results(). Throws TensorError if there
  // are none.
  const std::vector<T>& values() const {
    if (!status_.ok()) throw TensorError(status_);
    return values_;
  }

 private:
  absl::Status status_;
  std::vector<T> values_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_PER_REPLICA_H_
