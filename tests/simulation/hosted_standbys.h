#ifndef PARASOL_TESTS_SIMULATION_HOSTED_STANDBYS_H_
#define PARASOL_TESTS_SIMULATION_HOSTED_STANDBYS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/chief.pb.h"
#include "ps/shard/dedup_window.h"
#include "tests/simulation/shard_values.h"

namespace parasol::simulation {

// A push that a shard has applied, on its way to the shard's standby.
struct StandbyRecord {
  uint64_t worker = 0;
  uint64_t sequence = 0;
  StepId step = 0;
};

// The standbys of other ps's shards in one process: the model of StandbyHost.
class HostedStandbys {
 public:
  struct Standby {
    uint64_t number = 0;
    // The process that has taken it last, or the primary.
    int64_t newest_epoch = 0;
    bool is_open = true;  // true while its primary streams
    int64_t records = 0;
    ShardValues values;
    DedupIndex dedup;
  };

  // Begins a stream with the shard's state; the standby has this number.
  //   FailedPrecondition  a newer process has the shard's place.
  absl::Status Follow(const ShardValues& values, int64_t place_epoch,
                      uint64_t number);
  // Takes the stream's records, of which the first has number `first`. Returns
  // how many it has.
  //   FailedPrecondition  it has been given away, or the stream has ended.
  absl::StatusOr<int64_t> Append(int shard, uint64_t number, int64_t first,
                                 const std::vector<StandbyRecord>& records);
  // Notes that the stream has ended. Returns true if it went on.
  bool EndStream(int shard, uint64_t number);
  // Gives the standby away; `itself`: nobody has it afterwards.
  //   NotFound            there is none of this number.
  //   FailedPrecondition  a newer process has taken it.
  absl::StatusOr<ShardValues> Take(int shard, uint64_t number,
                                   int64_t place_epoch, bool itself);

  const std::map<int, Standby>& all() const { return standbys_; }
  bool Has(int shard, uint64_t number) const;
  std::vector<wire::LostPrimary> LostPrimaries() const;

 private:
  std::map<int, Standby> standbys_;  // key: the shard
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_HOSTED_STANDBYS_H_
