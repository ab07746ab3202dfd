#include "worker/replica_input.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace parasol {
namespace {

// Batches that are read and dropped to come to a later step: more than that,
// and opening the reader again costs less.
constexpr int64_t kMaxDropped = 4;

}  // namespace

absl::StatusOr<const Batch*> ReplicaInput::BatchOf(int replica, int64_t step) {
  Reader& reader = readers_[replica];
  if (reader.pipeline == nullptr || step < reader.next ||
      step > reader.next + kMaxDropped) {
    InputOptions options;
    options.seed = seed_;
    options.shard = replica;
    options.num_shards = total_replicas_;
    options.repeat = true;
    options.first_batch = step;
    ASSIGN_OR_RETURN(reader.pipeline, set_.OpenAgain(options));
    reader.next = step;
  }
  for (; reader.next < step; ++reader.next) {
    RETURN_IF_ERROR(reader.pipeline->Next().status());
  }
  ++reader.next;
  return reader.pipeline->Next();
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
