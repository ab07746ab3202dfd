#include "worker/replica_input.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ml/input/epoch_batches.h"

namespace parasol {
namespace {

// Batches that are read and dropped to come to a later step: more than that,
// and opening the reader again costs less.
constexpr int64_t kMaxDropped = 4;

}  // namespace

absl::StatusOr<ReplicaInput::Share> ReplicaInput::ShareOf(int replica,
                                                          int64_t step) {
  if (shard_sizes_.empty()) {
    ASSIGN_OR_RETURN(shard_sizes_, set_.ShardSizes(options_.total_replicas));
  }
  const int64_t batch_size = options_.batch_size;
  const int64_t largest =
      *std::max_element(shard_sizes_.begin(), shard_sizes_.end());
  const int64_t steps_per_epoch = BatchesOf(largest, batch_size);
  const int64_t epoch = step / steps_per_epoch;
  const int64_t step_in_epoch = step % steps_per_epoch;
  const int64_t batches = BatchesOf(shard_sizes_[replica], batch_size);
  Share share;
  share.weight = WeightOf(replica, step_in_epoch);
  if (step_in_epoch >= batches) return share;
  ASSIGN_OR_RETURN(
      share.batch,
      BatchOf(replica, epoch * batches + step_in_epoch, steps_per_epoch));
  return share;
}

absl::StatusOr<const Batch*> ReplicaInput::BatchOf(int replica, int64_t batch,
                                                   int64_t steps_per_epoch) {
  Reader& reader = readers_[replica];
  if (reader.pipeline == nullptr || batch < reader.next ||
      batch > reader.next + kMaxDropped) {
    InputOptions options;
    options.seed = options_.seed;
    options.shard = replica;
    options.num_shards = options_.total_replicas;
    options.repeat = true;
    options.first_batch = batch;
    options.counted_per_epoch = steps_per_epoch;
    options.empty_batches = true;
    ASSIGN_OR_RETURN(reader.pipeline, set_.OpenAgain(options));
    reader.next = batch;
  }
  for (; reader.next < batch; ++reader.next) {
    RETURN_IF_ERROR(reader.pipeline->Next().status());
  }
  ++reader.next;
  return reader.pipeline->Next();
}

float ReplicaInput::WeightOf(int replica, int64_t step) const {
  int64_t examples = 0;
  for (const int64_t size : shard_sizes_) {
    examples += ExamplesOfBatch(step, size, options_.batch_size);
  }
  const int64_t own =
      ExamplesOfBatch(step, shard_sizes_[replica], options_.batch_size);
  return static_cast<float>(static_cast<double>(own) * options_.total_replicas /
                            examples);
}

int64_t ReplicaInput::TakeSkippedRecords() {
  const int64_t skipped = set_.skipped_records();
  return skipped - std::exchange(taken_skipped_, skipped);
}

void ReplicaInput::Keep(const std::vector<int>& replicas) {
  std::erase_if(readers_, [&replicas](const auto& entry) {
    return std::count(replicas.begin(), replicas.end(), entry.first) == 0;
  });
}

}  // namespace parasol
