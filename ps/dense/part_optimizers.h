#ifndef PARASOL_PS_DENSE_PART_OPTIMIZERS_H_
#define PARASOL_PS_DENSE_PART_OPTIMIZERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "ps/dense/part_layout.h"

namespace parasol {

// The optimizers of a shard's parts: the job's, except for parts that have one
// of their own, or another rate. Immutable.
class PartOptimizers {
 public:
  // Uses one optimizer for all parts.
  explicit PartOptimizers(std::unique_ptr<const Optimizer> of_job);

  //   InvalidArgument  an optimizer can't be used; the message names the
  //                    variable.
  static absl::StatusOr<PartOptimizers> Create(const job::Optimizer& of_job,
                                               const PartLayout& layout);

  const Optimizer& of(size_t part) const;

  // Returns the bytes of values and slots of all parts.
  //   ResourceExhausted  they are more than `limit`.
  absl::StatusOr<uint64_t> CountBytes(const PartLayout& layout,
                                      uint64_t limit) const;

 private:
  std::shared_ptr<const Optimizer> of_job_;
  // key: the part's number
  std::map<size_t, std::shared_ptr<const Optimizer>> own_;
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_PART_OPTIMIZERS_H_
