#ifndef PARASOL_PS_PARAMETER_TABLE_H_
#define PARASOL_PS_PARAMETER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "ml/optimizer/optimizer.h"
#include "proto/parameter.pb.h"
#include "ps/array_pool.h"
#include "ps/chunk.h"
#include "ps/dedup_window.h"
#include "ps/table_layout.h"

namespace parasol {

// Everything a shard held at one moment: each push is in it with its sequence,
// or neither is. Holds references, no copies: while it lives, a push to a chunk
// costs that chunk's memory once more.
struct TableCut {
  struct Chunk {
    std::string variable;
    int64_t first_element = 0;
    ChunkContents contents;
  };
  // Ascending by (variable, first_element).
  std::vector<Chunk> chunks;
  DedupWindows dedup;
};

// The parts of variables that one shard owns, each with its optimizer slots.
//
// A pull sees each chunk whole; two chunks of a variable may be one push apart.
// A push is applied once per (worker incarnation, sequence), and wholly or not
// at all. Thread-safe: pushes and pulls of different chunks run in parallel.
class ParameterTable {
 public:
  // Writes elements [first, first + out.size()) of the array (kValueArray, or
  // 1 + a slot's number) of the part's variable, and returns the number of
  // updates that they have had.
  using Fill = absl::FunctionRef<absl::StatusOr<int64_t>(
      const wire::PartSpec& part, int array, int64_t first,
      absl::Span<float> out)>;

  // Errors are those of `fill`, and
  //   ResourceExhausted  the arrays don't fit in memory.
  static absl::StatusOr<std::unique_ptr<ParameterTable>> Create(
      TableLayout layout, std::unique_ptr<const Optimizer> optimizer,
      const DedupWindows& dedup, Fill fill);

  // Applies one gradient per range, float32 at any alignment. A duplicate of a
  // push that another thread is just applying is known at once: it may be
  // answered before that push is complete.
  //   InvalidArgument  the header or a gradient's size is wrong; nothing has
  //                    been changed.
  absl::StatusOr<Claim> Push(uint64_t worker_incarnation,
                             const wire::Push& push,
                             absl::Span<const PayloadView> gradients)
      ABSL_LOCKS_EXCLUDED(cut_mu_);

  // References to the values of the ranges, in order, one per chunk. What they
  // refer to does not change any more.
  //   InvalidArgument  the header is wrong, or it asks for over 48 MiB.
  absl::StatusOr<std::vector<PayloadRef>> Pull(const wire::Pull& pull) const;

  // Waits for the pushes that are being applied, and holds up others for as
  // long as it takes to copy the references.
  TableCut Cut() const ABSL_LOCKS_EXCLUDED(cut_mu_);

  uint64_t value_bytes() const { return layout_.elements() * sizeof(float); }
  uint64_t slot_bytes() const {
    return value_bytes() * optimizer_->slot_names().size();
  }

 private:
  ParameterTable(TableLayout layout,
                 std::unique_ptr<const Optimizer> optimizer);
  absl::Status AddChunk(const TableLayout::Chunk& place, Fill fill);
  absl::StatusOr<Claim> ClaimSequence(uint64_t worker_incarnation,
                                      uint64_t sequence)
      ABSL_SHARED_LOCKS_REQUIRED(cut_mu_);

  const TableLayout layout_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const std::shared_ptr<ArrayPool> pool_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // as the layout numbers them

  // Shared: a push is claimed and being applied. Exclusive: there is none.
  // Taken before dedup_mu_ and a chunk's lock.
  mutable absl::Mutex cut_mu_;
  mutable absl::Mutex dedup_mu_ ABSL_ACQUIRED_AFTER(cut_mu_);
  DedupIndex dedup_ ABSL_GUARDED_BY(dedup_mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_PARAMETER_TABLE_H_
