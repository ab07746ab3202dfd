#ifndef PARASOL_COORDINATOR_SHARDS_SHARD_BOARD_H_
#define PARASOL_COORDINATOR_SHARDS_SHARD_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The place of each shard, and the state of its variables there. Pure. A shard
// is a position in the list. A ps is a task index of the cluster; indices may
// have gaps.
class ShardBoard {
 public:
  struct Shard {
    int ps_index = 0;
    std::string address;
    std::vector<wire::PartSpec> parts;
    // The sparse tables, the same for every shard.
    std::vector<wire::TableSpec> tables = {};
  };

  // `first_version` must grow from one chief process to the next: workers
  // compare versions across them.
  ShardBoard(std::vector<Shard> shards, int64_t first_version);

  // Number of heartbeats in a row that must call a ready shard empty before
  // they are believed: the first may have been sent before the load was
  // answered.
  static constexpr int kDenials = 2;

  // Notes that a ps has registered; `holds_shard` is true if it says that it
  // has this run's variables in this layout. It is ready at once only if it was
  // loaded by this chief; otherwise it has yet to be given this chief's job.
  // Changes nothing if the incarnation is here already.
  void Arrived(int ps_index, uint64_t incarnation, bool holds_shard);
  // Notes what a ps says in a heartbeat. Returns true if the shard, which was
  // ready, has to be loaded again.
  bool Heard(int ps_index, uint64_t incarnation, bool holds_shard);
  void Lost(int ps_index);
  // Notes where the process at the place serves: one that acts for a lost ps,
  // in the process of ps `host`, at an address of its own; without a host, at
  // the place's. Call it before Arrived().
  void ServesAt(int ps_index, std::optional<int> host,
                const std::string& address);
  // Notes that all shards that are ready have to be given the job again. They
  // keep their values and stay ready meanwhile: workers and checkpoints go on.
  void GiveJobAgain();
  // Notes that the shard's variables are on `incarnation` now, with this
  // chief's job. Ignored if that process is not there any more.
  void Loaded(size_t shard, uint64_t incarnation);

  // Returns true if the shard's ps is present, and is that process.
  bool IsAt(size_t shard, uint64_t incarnation) const;
  // Returns true if that process also has the shard's variables.
  bool IsReadyAt(size_t shard, uint64_t incarnation) const;
  bool AllPresent() const;
  bool AllReady() const;
  // Returns the shards whose ps is present and has yet to be loaded.
  std::vector<size_t> Empty() const;
  // Returns the shards that are ready and have yet to be given the job again.
  std::vector<size_t> AwaitingJob() const;
  // Returns true if the shard is ready, or its ps said when it registered that
  // it holds the shard.
  bool HoldsShard(size_t shard) const {
    return places_[shard].holds_shard || places_[shard].state == State::kReady;
  }

  size_t size() const { return places_.size(); }
  const Shard& shard(size_t shard) const { return places_[shard].shard; }
  uint64_t incarnation(size_t shard) const {
    return places_[shard].incarnation;
  }
  // The address at which the process at the place serves, and the index of the
  // ps in whose process it acts.
  const std::string& address(size_t shard) const {
    const Place& place = places_[shard];
    return place.host ? place.acting_address : place.shard.address;
  }
  std::optional<int> host(size_t shard) const { return places_[shard].host; }

  // The version of the placement; grows whenever a shard is on another process
  // or was loaded again.
  int64_t version() const { return version_; }

  // Returns the places of the first `count` shards; of all if there are fewer.
  //   Unavailable  the message names the ps that are missing or being loaded.
  absl::StatusOr<wire::GetPlacementResponse> Placement(
      const std::string& run_id, size_t count = SIZE_MAX) const;

  // Returns the largest shard's bytes over the mean; 1 if all are equal (or
  // empty).
  double Skew() const;

 private:
  enum class State { kAbsent, kEmpty, kReady };
  struct Place {
    Shard shard;
    State state = State::kAbsent;
    uint64_t incarnation = 0;
    bool holds_shard = false;
    // True if this chief has loaded the shard in this incarnation.
    bool was_loaded = false;
    // True if this incarnation has yet to be given the job again.
    bool awaits_job = false;
    int denials = 0;
    std::optional<int> host = std::nullopt;
    std::string acting_address = {};
  };

  Place* Find(int ps_index);

  std::vector<Place> places_;
  int64_t version_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_SHARDS_SHARD_BOARD_H_
