#ifndef PARASOL_ML_INPUT_BATCH_DECODER_H_
#define PARASOL_ML_INPUT_BATCH_DECODER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ml/input/batch_order.h"
#include "ml/input/feature/batch.h"
#include "ml/input/format/example_set.h"

namespace parasol {

// Decodes batches ahead on threads of its own, and returns them in their order
// whatever the threads do. A batch goes round: free -> its examples are drawn,
// in turn -> decoded -> returned by Next(), in the same turn -> lent to the
// caller -> free. There are `ahead` of them plus the two that are lent, and
// their memory is used again. The threads start with the first Next(), so a set
// that is only opened to be opened again decodes nothing.
//
// Shutdown: each thread stops after its present batch and is joined.
class BatchDecoder {
 public:
  struct Options {
    int threads = 1;
    int ahead = 1;  // `threads` or more
    int shard = 0;  // Batch::shard
    // Seed of an example's randomness, together with its epoch and its number.
    uint64_t seed = 0;
    bool skip_corrupt = false;
    // The options of InputOptions with these names.
    bool by_number = false;
    bool empty_batches = false;
  };

  // Borrows `set` and `skipped`. Corrupt records that are left out are added to
  // `skipped` as they are found.
  BatchDecoder(const ExampleSet& set, const ModelInputs& inputs,
               BatchOrder order, const Options& options,
               std::atomic<int64_t>& skipped);
  ~BatchDecoder();

  // Returns the next batch as InputPipeline::Next() does. For one thread.
  absl::StatusOr<const Batch*> Next();
  // Names the next batches as InputPipeline::SetNext() does.
  void SetNext(const std::vector<int64_t>& numbers);

 private:
  struct Slot {
    Batch batch;
    std::vector<int64_t> examples;
    int64_t number = 0;  // the batch's, if batches are named
    int64_t place = 0;   // BatchOrder::PlaceOf()
    int64_t epoch = 0;
    absl::Status status;  // the first record's that stopped the batch
    bool is_decoded = false;
    // True if the batch was taken and is not wanted any more: it is free when
    // it is decoded.
    bool is_unwanted = false;
  };

  void Run();
  // Returns true if TakeTurn() need not wait.
  bool CanTakeTurn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the batch to decode next. Null: shutting down, or no batch is left.
  Slot* TakeTurn();
  // Blocks until the batch whose turn it is is decoded. Null: no batch is left.
  Slot* AwaitTurn();
  void Release(Slot* slot);
  void Decode(ExampleDecoder& decoder, Slot& slot);
  void LeaveOut(const absl::Status& corrupt);

  const ExampleSet& set_;
  const ModelInputs inputs_;
  const Options options_;
  const int64_t batches_per_epoch_;
  std::atomic<int64_t>& skipped_;
  std::vector<Slot> slots_;

  absl::Mutex mu_;
  BatchOrder order_ ABSL_GUARDED_BY(mu_);
  // Numbers of the batches that are named and not taken yet.
  std::deque<int64_t> named_ ABSL_GUARDED_BY(mu_);
  std::vector<Slot*> free_ ABSL_GUARDED_BY(mu_);
  std::deque<Slot*> turns_ ABSL_GUARDED_BY(mu_);  // taken, not yet given out
  bool is_drawn_ ABSL_GUARDED_BY(mu_) = false;    // no batch is left to draw
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;

  // State of Next().
  Slot* lent_ = nullptr;
  Slot* lent_before_ = nullptr;
  absl::Status failure_;
  int64_t empty_in_a_row_ = 0;

  std::vector<std::thread> threads_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BATCH_DECODER_H_
