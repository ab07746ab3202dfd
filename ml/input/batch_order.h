#ifndef PARASOL_ML_INPUT_BATCH_ORDER_H_
#define PARASOL_ML_INPUT_BATCH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ml/input/example_order.h"
#include "ml/input/input_shard.h"

namespace parasol {

// The examples of each batch of the shards that one reader reads. Batches are
// numbered from 0 over all epochs. An epoch has each shard's batches, one shard
// after the other, and so each example once; the last batch of each shard may
// be smaller.
class BatchOrder {
 public:
  struct Options {
    int64_t batch_size = 1;
    // True if epochs follow each other for ever; otherwise there is one epoch.
    bool repeat = false;
    // Number of the first batch that Next() returns.
    int64_t first_batch = 0;
    // Number of batches that an epoch counts as in PlaceOf(); 0: as it has.
    int64_t counted_per_epoch = 0;
  };

  // Borrows `selection`. There is a shard, and none is empty.
  BatchOrder(const Selection& selection, const std::vector<InputShard>& shards,
             const Options& options);

  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  // Number of the batch that Next() returns.
  int64_t next_batch() const { return next_batch_; }

  // Puts the numbers of the next batch's examples into `examples` and returns
  // the number of their epoch. Leaves `examples` empty if no batch is left.
  int64_t Next(std::vector<int64_t>& examples);

  // Returns about how many batches the training has had before batch `number`,
  // over all epochs: shards are read beside each other.
  int64_t PlaceOf(int64_t number) const;

  // Puts the numbers of the examples of batch `number` into `examples` and
  // returns the number of their epoch. Draws the shard's examples between the
  // last batch that was taken of it and this one; for a batch before that, or
  // of another epoch, those from the epoch's start.
  int64_t Take(int64_t number, std::vector<int64_t>& examples);

 private:
  // Returns the index of the sequence of a batch of an epoch.
  size_t SequenceOf(int64_t batch) const;

  struct Sequence {
    InputShard shard;
    ExampleOrder order;
    // Number, within an epoch, of the shard's first batch, and of the batch
    // that `order` gives next.
    int64_t first_batch = 0;
    int64_t next_batch = 0;
    int64_t epoch = -1;  // -1: not started
  };

  const Selection& selection_;
  const Options options_;
  int64_t batches_per_epoch_ = 0;
  std::vector<Sequence> sequences_;
  int64_t next_batch_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BATCH_ORDER_H_
