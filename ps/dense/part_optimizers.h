#ifndef PARASOL_PS_DENSE_PART_OPTIMIZERS_H_
#define PARASOL_PS_DENSE_PART_OPTIMIZERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "ps/dense/table_layout.h"

namespace parasol {

// What the parts of a shard are updated with: the job's optimizer, but for
// those that have one of their own. Immutable.
class PartOptimizers {
 public:
  // One for all parts.
  explicit PartOptimizers(std::unique_ptr<const Optimizer> of_job);

  //   InvalidArgument  an optimizer can't be used: names the variable.
  static absl::StatusOr<PartOptimizers> Create(const job::Optimizer& of_job,
                                               const TableLayout& layout);

  const Optimizer& of(size_t part) const;

  // Of values and slots of all parts.
  //   ResourceExhausted  more than `limit`.
  absl::StatusOr<uint64_t> CountBytes(const TableLayout& layout,
                                      uint64_t limit) const;

 private:
  std::shared_ptr<const Optimizer> of_job_;
  std::map<size_t, std::shared_ptr<const Optimizer>> own_;  // by part
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_PART_OPTIMIZERS_H_
