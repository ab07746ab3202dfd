#ifndef PARASOL_COORDINATOR_STEPS_BATCH_POOL_H_
#define PARASOL_COORDINATOR_STEPS_BATCH_POOL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/steps/batch_spans.h"

namespace parasol {

// The batches that are granted to no worker yet, of all epochs. Batches are
// numbered from 0; an epoch has the batches of shard 0, then the batches of
// shard 1, and so on. No batch of an epoch is taken before all of the epoch
// before it. Pure.
class BatchPool {
 public:
  // The pool of a run of which `done` batches are done, and none of
  // `unfinished`. Without `unfinished`, the first `done` are taken as done, in
  // the order in which a worker of shard 0 takes them.
  explicit BatchPool(int64_t done = 0, BatchSpans unfinished = {})
      : taken_(done + unfinished.size()), returned_(std::move(unfinished)) {}

  // Sets the number of batches that each shard has in an epoch; all are at
  // least 1. Until then, and with one shard, batches are taken in their order.
  // Only the first call has an effect.
  void SetShards(const std::vector<int64_t>& shard_batches);

  // Removes a batch and returns it: the first one that was put back, or else
  // the next one of `shard`, or, if the shard has none left in this epoch, of
  // the shard that has most left.
  int64_t Take(int shard);
  // Removes the batches of the next `count` calls of Take(), in a time that
  // does not grow with the number of epochs.
  void TakeMany(int shard, int64_t count);
  // Removes the batches first, …, first + count - 1, whatever their turn, and
  // returns how many of them were there: those that were not taken before, or
  // were put back. The time grows with the epochs that have been begun, at
  // most.
  int64_t TakeThese(int64_t first, int64_t count);
  // Puts back a batch that has been taken.
  void Return(int64_t batch) { returned_.Add(batch); }
  // Removes a batch that has been returned. Returns false if it is not there.
  bool Remove(int64_t batch) { return returned_.Remove(batch); }

  // Returns the batches that are left in the epochs that have been begun; later
  // epochs are left whole. A pool of as many batches done, and these
  // unfinished, goes on in the same way.
  BatchSpans Left() const;

 private:
  struct Shard {
    // Number of the shard's first batch within an epoch.
    int64_t first = 0;
    int64_t batches = 0;
    // Number of batches that were taken in the present epoch.
    int64_t taken = 0;
  };

  int64_t TakeOfShards(int64_t first, int64_t end);
  // Removes begin, …, end - 1, which are a shard's batches of the epoch that is
  // open: the one that was begun last, of which `open` is the first batch.
  int64_t TakeOfShard(Shard& shard, int64_t open, int64_t begin, int64_t end);
  // Returns the end of the epochs that have been begun.
  int64_t BegunEnd() const;
  // Begins the epoch of which `open` is the first batch: what is left of the
  // epochs before it is returned.
  void Begin(int64_t open);

  int64_t taken_;  // number of batches of all epochs that were taken
  int64_t batches_per_epoch_ = 0;
  std::vector<Shard> shards_;  // empty: batches are taken in their order
  BatchSpans returned_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_BATCH_POOL_H_
