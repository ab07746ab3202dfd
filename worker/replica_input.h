#ifndef PARASOL_WORKER_REPLICA_INPUT_H_
#define PARASOL_WORKER_REPLICA_INPUT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/input_pipeline.h"

namespace parasol {

// The batches of synchronous training. The data set is split into as many
// shards as there are replicas. An epoch has as many steps as the largest shard
// has batches; in step i of an epoch, replica r has batch i of shard r,
// whichever worker computes it, and nothing if its shard has no such batch.
// Each replica that is kept has one reader, on a thread of its own. Must be
// used from one thread.
class ReplicaInput {
 public:
  struct Options {
    // Seed of the examples' order.
    uint64_t seed = 0;
    int total_replicas = 1;
    // Number of examples in a replica's batch.
    int64_t batch_size = 1;
  };

  // A replica's part of a step.
  struct Share {
    // The examples; nullptr or empty if there are none. Valid until the
    // replica's next share is requested.
    const Batch* batch = nullptr;
    // Factor of the replica's gradients, which are means over its batch, such
    // that the mean over all replicas is the mean over the step's examples. 1
    // if all replicas have as many examples. Corrupt records count.
    float weight = 1;
  };

  // Reads the examples of `set`, which must outlive this object. The shard that
  // `set` itself is configured with has no effect.
  ReplicaInput(const InputPipeline& set, const Options& options)
      : set_(set), options_(options) {}

  // Returns a replica's part of a step. Steps are meant to be requested in
  // ascending order without gaps: any other step opens the reader anew.
  //   InvalidArgument  there are fewer examples than replicas.
  //   any other        as for InputPipeline::Next().
  absl::StatusOr<Share> ShareOf(int replica, int64_t step);

  // Returns the number of corrupt records that all readers have left out since
  // the last call.
  int64_t TakeSkippedRecords();

  // Closes the readers of all other replicas.
  void Keep(const std::vector<int>& replicas);

 private:
  struct Reader {
    std::unique_ptr<InputPipeline> pipeline;
    int64_t next = 0;  // number of the batch that `pipeline` gives next
  };

  // Returns a batch of a replica's shard; batches are numbered over all epochs.
  absl::StatusOr<const Batch*> BatchOf(int replica, int64_t batch,
                                       int64_t steps_per_epoch);
  // Returns the factor of a replica's gradients in step `step` of an epoch.
  float WeightOf(int replica, int64_t step) const;

  const InputPipeline& set_;
  const Options options_;
  std::vector<int64_t> shard_sizes_;  // empty: not known yet
  std::map<int, Reader> readers_;     // key: replica
  int64_t taken_skipped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_INPUT_H_
