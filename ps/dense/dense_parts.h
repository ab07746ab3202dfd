#ifndef PARASOL_PS_DENSE_DENSE_PARTS_H_
#define PARASOL_PS_DENSE_DENSE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"
#include "ps/dense/array_pool.h"
#include "ps/dense/chunk.h"
#include "ps/dense/part_layout.h"
#include "ps/dense/part_optimizers.h"
#include "ps/dense/received_gradient.h"
#include "ps/operation/operation.h"
#include "ps/step/training_rules.h"

namespace parasol {

// The parts of dense variables that one shard owns, each with its optimizer
// slots. A pull sees each chunk whole; two chunks of a variable may be one push
// apart. Thread-safe: pushes and pulls of different chunks run in parallel.
class DenseParts {
 public:
  // Writes elements [first, first + out.size()) of the array (kValueArray, or
  // 1 + a slot's number) of the part's variable, and returns the number of
  // updates that they have had.
  using Fill = absl::FunctionRef<absl::StatusOr<int64_t>(
      const wire::PartSpec& part, int array, int64_t first,
      absl::Span<float> out)>;

  // Fails as `fill` does, or with
  //   ResourceExhausted  the arrays don't fit in memory.
  static absl::StatusOr<std::unique_ptr<DenseParts>> Create(
      PartLayout layout, PartOptimizers optimizers, const TrainingRules& rules,
      Fill fill);

  using Ranges = PartLayout::ChunkRanges;

  // A push that has been checked and may be applied. Points into the push's
  // payloads.
  struct Gradients {
    Ranges ranges;
    absl::InlinedVector<ReceivedGradient, 1> of_ranges;
  };
  //   InvalidArgument  a range, an encoding, a payload's size or an offset is
  //                    wrong, a variable is frozen, or the values that are
  //                    asked for exceed 48 MiB.
  //   OutOfRange       an element is not finite; the message names it.
  absl::StatusOr<Gradients> Parse(const wire::Push& push,
                                  absl::Span<const PayloadView> payloads) const;

  // Goes on with other optimizers. No push may be being applied.
  //   InvalidArgument  a part's slots would change; nothing has changed.
  absl::Status UseOptimizers(PartOptimizers optimizers);
  // Goes on with another policy; one may be given anew at any time.
  void UseNonFinite(NonFinite policy) {
    if (rules_.non_finite != policy) rules_.non_finite = policy;
  }

  // Makes one update of each chunk; asynchronous training only.
  UpdateBounds Apply(const Gradients& gradients);

  // The functions of synchronous training; see Chunk. Each counts its latch
  // down once per chunk.
  absl::Status CheckNotAhead(const Ranges& ranges, int64_t step) const;
  StepEntries Contribute(const StepPush& push, const Gradients& gradients,
                         const std::shared_ptr<Latch>& latch,
                         Released& released);
  void NotifyAt(const Ranges& ranges, int64_t updates,
                const std::shared_ptr<Latch>& latch, Released& released);
  // Functions of synchronous training that act on all chunks.
  void HoldNow(UpdateBounds& updates);
  void Hold(int64_t updates, Released& released);
  bool GoOnAt(int64_t updates, Released& released);
  void Abandon(const absl::Status& status, Released& released);

  //   InvalidArgument  a range is wrong, or the ranges hold more than 48 MiB.
  absl::StatusOr<Ranges> Resolve(const wire::Pull& pull) const;
  static size_t Chunks(const Ranges& ranges);
  UpdateBounds Updates(const Ranges& ranges) const;

  // The oldest values of the ranges, in order, that have had `min_updates`
  // (Chunk::Value()): as float32, references to the chunks' arrays, which no
  // longer change; in another encoding, copies.
  struct Pulled {
    OperationResult::Payloads payloads;
    UpdateBounds updates;
  };
  Pulled Pull(const Ranges& ranges, job::Encoding encoding,
              int64_t min_updates) const;

  // The chunks; a chunk's index is its number in the layout.
  const std::vector<std::unique_ptr<Chunk>>& chunks() const { return chunks_; }
  const PartLayout& layout() const { return layout_; }

  uint64_t value_bytes() const { return layout_.elements() * sizeof(float); }
  uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  DenseParts(PartLayout layout, PartOptimizers optimizers,
             const TrainingRules& rules);
  ChunkUpdater UpdaterOf(size_t chunk) const;
  absl::Status AddChunk(const PartLayout::Chunk& place, Fill fill);
  absl::Status CheckNotFrozen(const Ranges& ranges) const;
  absl::Status CheckFinite(const ReceivedGradient& gradient,
                           const PartLayout::ChunkRange& range) const;

  const PartLayout layout_;
  PartOptimizers optimizers_;
  const uint64_t slot_bytes_;
  TrainingRules rules_;
  const std::shared_ptr<ArrayPool> pool_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // index: the number in layout_
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_DENSE_PARTS_H_
