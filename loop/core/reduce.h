#ifndef PARASOL_LOOP_CORE_REDUCE_H_
#define PARASOL_LOOP_CORE_REDUCE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop/peers/peers.h"
#include "ml/tape/tensor.h"

// What becomes of a value of each replica, over all processes. Rules and
// results are tf.distribute's (TensorFlow 2.10, MirroredStrategy).
namespace parasol::loop {

// Returns the values of all replicas of all processes, in the order of the
// replicas, given those of this process.
absl::StatusOr<std::vector<Tensor>> GatherValues(absl::string_view what,
                                                 std::vector<Tensor> locals,
                                                 Peers& peers);

// Returns the sum of `values`, which have one shape, in their order; with
// `is_mean` their mean.
//   InvalidArgument  shapes or dtypes differ: shows two of them.
absl::StatusOr<Tensor> ReduceValues(bool is_mean,
                                    absl::Span<const Tensor> values);

// Adds up each value along `axis` (a negative one counts from the last) and
// then all of them. With `is_mean` the mean over all elements along the axis of
// all values, which may have different sizes there.
//   InvalidArgument  there is no such axis, or the shapes do not fit.
absl::StatusOr<Tensor> ReduceValuesAlong(bool is_mean, int axis,
                                         absl::Span<const Tensor> values);

// Returns `values`, one behind the other along `axis`.
//   InvalidArgument  as above, or a value is a scalar.
absl::StatusOr<Tensor> ConcatenateValues(int axis,
                                         absl::Span<const Tensor> values);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_REDUCE_H_
