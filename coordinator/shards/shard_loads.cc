#include "coordinator/shards/shard_loads.h"

namespace parasol {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);

// A load that failed like this will fail again. (FailedPrecondition is the
// answer of a process that the order was not meant for: another one has come to
// the place, and has yet to register.)
bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) ||
         absl::IsNotFound(status) || absl::IsResourceExhausted(status);
}

}  // namespace

std::vector<ShardLoads::Target> ShardLoads::Due(const ShardBoard& board,
                                                absl::Time now) const {
  std::vector<Target> targets;
  if (now < next_) return targets;
  std::vector<size_t> shards = board.Empty();
  const std::vector<size_t> awaiting = board.AwaitingJob();
  shards.insert(shards.end(), awaiting.begin(), awaiting.end());
  for (const size_t shard : shards) {
    targets.push_back({.shard = shard,
                       .incarnation = board.incarnation(shard),
                       .holds_shard = board.HoldsShard(shard),
                       .address = board.address(shard),
                       .host = board.host(shard)});
  }
  return targets;
}

ShardLoads::Verdict ShardLoads::Done(const Target& target,
                                     const absl::Status& status,
                                     ShardBoard& board, absl::Time now) {
  if (board.incarnation(target.shard) != target.incarnation) {
    return Verdict::kMoot;
  }
  if (status.ok()) {
    board.Loaded(target.shard, target.incarnation);
    failures_ = 0;
    return Verdict::kLoaded;
  }
  // A shard that is ready has its values: it trains on as it is, whatever is
  // wrong with the disk, and is given the job later.
  if (board.IsReadyAt(target.shard, target.incarnation)) {
    next_ = now + kRetry;
    return absl::IsInvalidArgument(status) ? Verdict::kFailed : Verdict::kAgain;
  }
  if (now >= next_) ++failures_;  // once for an order's targets
  next_ = now + kRetry;
  if (IsPermanent(status)) return Verdict::kFailed;
  return failures_ < kMaxFailures ? Verdict::kAgain : Verdict::kGaveUp;
}

}  // namespace parasol
