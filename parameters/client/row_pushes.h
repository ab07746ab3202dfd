#ifndef PARASOL_PARAMETERS_CLIENT_ROW_PUSHES_H_
#define PARASOL_PARAMETERS_CLIENT_ROW_PUSHES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "parameters/client/shard_operation.h"

namespace parasol {

// The pushes of rows that are not answered yet, by table. A pull that is
// started while there is one has to travel in the lane of the table's pushes to
// see it. Thread-safe.
class RowPushes {
 public:
  explicit RowPushes(size_t tables) : calls_(tables) {}

  // Notes a push to `table`. Its completion expects its operations already, and
  // none of them has been sent.
  void Add(size_t table, std::shared_ptr<const Call> call)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if an operation of a push to `table` is not answered.
  bool AreUnanswered(size_t table) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Calls = std::vector<std::shared_ptr<const Call>>;

  // Returns the table's calls without those that are finished.
  Calls& Unfinished(size_t table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  // The calls of each table.
  std::vector<Calls> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_ROW_PUSHES_H_
