#ifndef PARASOL_ML_INPUT_BATCH_ORDER_H_
#define PARASOL_ML_INPUT_BATCH_ORDER_H_

#include <cstdint>
#include <vector>

#include "ml/input/example_order.h"
#include "ml/input/input_shard.h"

namespace parasol {

// The examples of each batch of one reader, batch after batch.
class BatchOrder {
 public:
  struct Options {
    int64_t batch_size = 1;
    // True if epochs follow each other for ever; otherwise there is one epoch.
    bool repeat = false;
    // Number of the first batch that Next() returns, counted over all epochs.
    int64_t first_batch = 0;
  };

  // Borrows `selection`. The shard is not empty.
  BatchOrder(const Selection& selection, const InputShard& shard,
             const Options& options);

  int64_t batches_per_epoch() const { return batches_per_epoch_; }

  // Puts the numbers of the next batch's examples into `examples` and returns
  // the number of their epoch. Leaves `examples` empty if no batch is left.
  int64_t Next(std::vector<int64_t>& examples);

 private:
  const Selection& selection_;
  const InputShard shard_;
  const Options options_;
  const int64_t batches_per_epoch_;
  ExampleOrder order_;
  int64_t epoch_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BATCH_ORDER_H_
