#ifndef PARASOL_LOOP_DISTRIBUTED_DATASET_H_
#define PARASOL_LOOP_DISTRIBUTED_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "loop/core/stream.h"
#include "loop/core/world.h"
#include "loop/dataset.h"
#include "loop/peers/peers.h"
#include "loop/per_replica.h"

namespace parasol::loop {

// What a function that makes a process's own data set is told.
struct InputContext {
  int num_input_pipelines = 1;  // processes, in step or not
  int input_pipeline_id = 0;    // this one
  int num_replicas_in_sync = 1;

  // Returns a replica's part of a global batch.
  int64_t PerReplicaBatchSize(int64_t global_batch_size) const {
    return global_batch_size / num_replicas_in_sync;
  }
};

// A data set whose batches are divided among the replicas. Its iterators give
// the pieces of this process's replicas.
//
//   for (const PerReplica<Batch>& batch : data) strategy->Run(step, batch);
//
// A replica's piece may have no examples, at the end of a data set: it takes
// part in the step all the same.
class DistributedDataset {
 public:
  class Iterator;
  // The end of a range-based for loop.
  struct End {};

  // `pieces`: into how many each batch is cut; `first`: the piece of this
  // process's first replica, of which there are `locals`. `peers`: told of the
  // time in which batches are made; null, or must outlive all iterators.
  DistributedDataset(Dataset dataset, int pieces, int first, int locals,
                     Peers* peers = nullptr)
      : dataset_(std::move(dataset)),
        pieces_(pieces),
        first_(first),
        locals_(locals),
        peers_(peers) {}

  // Begins at the first batch.
  Iterator begin() const;
  End end() const { return {}; }

 private:
  const Dataset dataset_;
  const int pieces_;
  const int first_;
  const int locals_;
  Peers* const peers_;
};

// A place in a distributed data set. An error of the data set is a batch, the
// last one, whose status() it is.
class DistributedDataset::Iterator {
 public:
  // Returns the batch at this place.
  const PerReplica<Batch>& operator*() const { return *batch_; }
  // Goes to the next batch.
  Iterator& operator++();
  // Returns the batch at this place and goes to the next one.
  PerReplica<Batch> Next();
  friend bool operator==(const Iterator& it, End) { return it.is_at_end(); }

  bool is_at_end() const { return !batch_.has_value(); }
  // Number of batches before this one.
  int64_t position() const { return position_; }
  // Goes to batch `position` from the first one: where a checkpoint was
  // written.
  absl::Status Seek(int64_t position);

 private:
  friend class DistributedDataset;
  Iterator(Dataset dataset, int pieces, int first, int locals, Peers* peers);
  void Read();
  PerReplica<Batch> Cut(const Batch& batch) const;

  const Dataset dataset_;
  const int pieces_;
  const int first_;
  const int locals_;
  Peers* const peers_;
  std::unique_ptr<Stream> stream_;  // null: it can't be read
  std::optional<PerReplica<Batch>> batch_;
  int64_t position_ = 0;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_DISTRIBUTED_DATASET_H_
