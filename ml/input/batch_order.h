#ifndef PARASOL_ML_INPUT_BATCH_ORDER_H_
#define PARASOL_ML_INPUT_BATCH_ORDER_H_

#include <cstdint>
#include <vector>

#include "ml/input/example_order.h"
#include "ml/input/sharding.h"

namespace parasol {

// The examples of each batch of one reader, batch after batch.
class BatchOrder {
 public:
  struct Options {
    int64_t batch_size = 1;
    // True if passes follow each other for ever; otherwise there is one pass.
    bool repeat = false;
    // Number of the first batch that Next() returns, counted over all passes.
    int64_t first_batch = 0;
  };

  // Borrows `selection`. The shard is not empty.
  BatchOrder(const Selection& selection, const Shard& shard,
             const Options& options);

  int64_t batches_per_pass() const { return batches_per_pass_; }

  // Puts the numbers of the next batch's examples into `examples` and returns
  // the number of their pass. Leaves `examples` empty if no batch is left.
  int64_t Next(std::vector<int64_t>& examples);

 private:
  const Selection& selection_;
  const Shard shard_;
  const Options options_;
  const int64_t batches_per_pass_;
  ExampleOrder order_;
  int64_t pass_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BATCH_ORDER_H_
