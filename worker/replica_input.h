#ifndef PARASOL_WORKER_REPLICA_INPUT_H_
#define PARASOL_WORKER_REPLICA_INPUT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/input_pipeline.h"

namespace parasol {

// The batches of synchronous training: replica r's in step s is batch s of the
// data's shard r, of as many shards as there are replicas, whichever worker
// computes it. One reader, on a thread of its own, for each replica that is
// kept. For one thread.
class ReplicaInput {
 public:
  // Reads the examples of `set`, which must outlive it, with its seed and no
  // matter which of its shards.
  ReplicaInput(const InputPipeline& set, uint64_t seed, int total_replicas)
      : set_(set), seed_(seed), total_replicas_(total_replicas) {}

  // Valid until the replica's next batch is asked for. Best asked for step by
  // step: a jump opens the reader again.
  //   InvalidArgument  there are fewer examples than replicas.
  // Other errors are InputPipeline::Next()'s.
  absl::StatusOr<const Batch*> BatchOf(int replica, int64_t step);

  // Corrupt records that were left out since the last call, by all readers.
  int64_t TakeSkippedRecords();

  // Closes the readers of all other replicas.
  void Keep(const std::vector<int>& replicas);

 private:
  struct Reader {
    std::unique_ptr<InputPipeline> pipeline;
    int64_t next = 0;  // the step whose batch it gives next
  };

  const InputPipeline& set_;
  const uint64_t seed_;
  const int total_replicas_;
  std::map<int, Reader> readers_;  // by replica
  int64_t taken_skipped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_INPUT_H_
