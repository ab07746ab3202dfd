#ifndef PARASOL_PS_SHARD_OPERATION_PLACES_H_
#define PARASOL_PS_SHARD_OPERATION_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "ps/dense/dense_parts.h"
#include "ps/operation/operation.h"
#include "ps/sparse/received_rows.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/latch.h"
#include "ps/step/step_state.h"

// The places of a shard that an operation goes to: chunks of dense parts, or a
// sparse table. All pushes have one form of functions, and all pulls another.
namespace parasol {

// Gradients of a push to chunks, which have been checked. Points to them.
struct ChunkGradients {
  using Pulled = DenseParts::Pulled;

  size_t size() const { return DenseParts::Chunks(gradients.ranges); }
  absl::StatusOr<UpdateBounds> Apply() const { return parts.Apply(gradients); }
  absl::StatusOr<Pulled> Pull(job::Encoding encoding) const {
    return parts.Pull(gradients.ranges, encoding, /*min_updates=*/0);
  }
  absl::StatusOr<Pulled> ApplyAndPull(job::Encoding encoding) const {
    parts.Apply(gradients);
    return Pull(encoding);
  }
  absl::Status CheckNotAhead(int64_t step) const {
    return parts.CheckNotAhead(gradients.ranges, step);
  }
  StepEntries Contribute(const StepPush& step,
                         const std::shared_ptr<Latch>& latch,
                         Released& released) const {
    return parts.Contribute(step, gradients, latch, released);
  }
  // Returns a function that may be called when the gradients are gone.
  auto Updates() const {
    return [&parts = parts, ranges = gradients.ranges] {
      return parts.Updates(ranges);
    };
  }

  DenseParts& parts;
  const DenseParts::Gradients& gradients;
};

// Gradients of a push to a table.
struct TableGradients {
  using Pulled = SparseTable::Pulled;

  size_t size() const { return 1; }
  absl::StatusOr<UpdateBounds> Apply() const { return table.Apply(gradients); }
  absl::StatusOr<Pulled> Pull(job::Encoding encoding) const {
    return table.Pull(gradients, encoding, /*min_updates=*/0);
  }
  absl::StatusOr<Pulled> ApplyAndPull(job::Encoding encoding) const {
    return table.ApplyAndPull(gradients, encoding);
  }
  absl::Status CheckNotAhead(int64_t step) const {
    return table.CheckNotAhead(step);
  }
  StepEntries Contribute(const StepPush& step,
                         const std::shared_ptr<Latch>& latch,
                         Released& released) const {
    return table.Contribute(step, gradients, latch, released);
  }
  auto Updates() const {
    return [&table = table] { return table.updates(); };
  }

  SparseTable& table;
  const ReceivedRows& gradients;
};

// A pull of chunks.
struct ChunkPull {
  size_t size() const { return DenseParts::Chunks(ranges); }
  absl::StatusOr<DenseParts::Pulled> Pull(job::Encoding encoding,
                                          int64_t min_updates) const {
    return parts.Pull(ranges, encoding, min_updates);
  }
  void NotifyAt(int64_t updates, const std::shared_ptr<Latch>& latch,
                Released& released) const {
    parts.NotifyAt(ranges, updates, latch, released);
  }
  // Points to the request's payloads no more.
  void Keep() {}

  DenseParts& parts;
  DenseParts::Ranges ranges;
};

// A pull of a table's rows.
struct TablePull {
  size_t size() const { return 1; }
  absl::StatusOr<SparseTable::Pulled> Pull(job::Encoding encoding,
                                           int64_t min_updates) const {
    return table.Pull(ids, encoding, min_updates);
  }
  void NotifyAt(int64_t updates, const std::shared_ptr<Latch>& latch,
                Released& released) const {
    table.NotifyAt(updates, latch, released);
  }
  void Keep() { ids.KeepIds(); }

  SparseTable& table;
  ReceivedRows ids;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_OPERATION_PLACES_H_
