#ifndef PARASOL_COORDINATOR_SHARDS_SHARD_LOADS_H_
#define PARASOL_COORDINATOR_SHARDS_SHARD_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/shards/shard_board.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The loads that a chief orders: decides which are due, which are tried again,
// and which end the job. Pure.
class ShardLoads {
 public:
  // Number of failures in a row that are borne.
  static constexpr int kMaxFailures = 60;

  struct Target {
    size_t shard = 0;
    uint64_t incarnation = 0;
    // True if the process says that it holds the shard: it keeps its values,
    // and takes over this chief's job.
    bool holds_shard = false;
    // The standby that is kept for the shard (wire::LoadRequest); nullopt: the
    // job does not replicate.
    std::optional<wire::StandbyPlace> standby = std::nullopt;
    // ShardBoard::address() and host().
    std::string address = {};
    std::optional<int> host = std::nullopt;
  };

  enum class Verdict {
    kLoaded,
    kAgain,   // later
    kMoot,    // another process has come to the place, whose turn is next
    kFailed,  // permanently: the job fails
    kGaveUp,  // too often: the chief ends
  };

  // Returns the shards that are to be loaded now, and those that are to be
  // given the job again.
  std::vector<Target> Due(const ShardBoard& board, absl::Time now) const;

  // Notes the result of a load on the board, and returns what follows.
  Verdict Done(const Target& target, const absl::Status& status,
               ShardBoard& board, absl::Time now);

  int failures() const { return failures_; }

 private:
  int failures_ = 0;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_SHARDS_SHARD_LOADS_H_
