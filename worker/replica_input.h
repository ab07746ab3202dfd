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
// shards as there are replicas; the batch of replica r in step s is batch s of
// shard r, whichever worker computes it. Each replica that is kept has one
// reader, on a thread of its own. Must be used from one thread.
class ReplicaInput {
 public:
  // Reads the examples of `set`, which must outlive this object, in an order
  // given by `seed`. The shard that `set` itself is configured with has no
  // effect.
  ReplicaInput(const InputPipeline& set, uint64_t seed, int total_replicas)
      : set_(set), seed_(seed), total_replicas_(total_replicas) {}

  // Returns a batch that stays valid until the replica's next batch is
  // requested. Steps are meant to be requested in ascending order without gaps:
  // any other step opens the reader anew.
  //   InvalidArgument  there are fewer examples than replicas.
  //   any other        as for InputPipeline::Next().
  absl::StatusOr<const Batch*> BatchOf(int replica, int64_t step);

  // Returns the number of corrupt records that all readers have left out since
  // the last call.
  int64_t TakeSkippedRecords();

  // Closes the readers of all other replicas.
  void Keep(const std::vector<int>& replicas);

 private:
  struct Reader {
    std::unique_ptr<InputPipeline> pipeline;
    int64_t next = 0;  // step whose batch `pipeline` gives next
  };

  const InputPipeline& set_;
  const uint64_t seed_;
  const int total_replicas_;
  std::map<int, Reader> readers_;  // key: replica
  int64_t taken_skipped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_INPUT_H_
