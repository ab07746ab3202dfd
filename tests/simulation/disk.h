#ifndef PARASOL_TESTS_SIMULATION_DISK_H_
#define PARASOL_TESTS_SIMULATION_DISK_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "proto/checkpoint.pb.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shard_values.h"

namespace parasol::simulation {

// A checkpoint as it lies on the disk.
struct Checkpoint {
  durable::CheckpointManifest manifest;
  std::vector<std::shared_ptr<const ShardValues>> files;
  bool damaged = false;
};

// The checkpoint directory. A commit is there or not: what a crash leaves of
// one in progress has no name that a reader looks at.
class Disk {
 public:
  // Errors that pass: each read or write fails with probability one half.
  void SetReadErrors(bool on) { read_errors_ = on; }
  void SetWriteErrors(bool on) { write_errors_ = on; }

  absl::Status CheckWrite(Random& random) const;
  absl::Status CheckRead(Random& random) const;
  // Returns the steps of all checkpoints, newest first.
  std::vector<int64_t> Steps() const;
  //   DataLoss     the checkpoint is damaged.
  //   NotFound     there is none of this step.
  //   Unavailable  it can't be read now.
  absl::StatusOr<const Checkpoint*> Read(int64_t step, Random& random) const;

  absl::Status Commit(Checkpoint checkpoint, Random& random);
  // Removes the oldest checkpoints as StoreCheckpoint() does.
  void Prune(int max_to_keep, int64_t newest, const KeptCheckpoints& kept);

  // Evaluations are appended, and read as ReadEvaluations() does.
  void Append(Evaluation evaluation) {
    evaluations_.push_back(std::move(evaluation));
  }
  // Returns the run's evaluations that the history has; all of the run's
  // without a history.
  std::vector<Evaluation> Evaluations(
      const std::string& run_id,
      const std::optional<RunHistory>& history) const;

  // The number of the chief that has taken the directory last.
  int owner() const { return owner_; }
  // Takes the directory for a chief and returns the chief's epoch.
  int64_t Take(int chief) {
    owner_ = chief;
    return ++epochs_;
  }
  // The newest place epochs of the ps that a chief has recorded.
  const std::map<int, int64_t>& ps_epochs() const { return ps_epochs_; }
  void RecordPlaces(const std::map<int, int64_t>& epochs) {
    for (const auto& [ps, epoch] : epochs) {
      ps_epochs_[ps] = std::max(ps_epochs_[ps], epoch);
    }
  }

  // Files of a set that grows that chiefs of a run have recorded, as
  // FollowedLog has them.
  const std::vector<durable::FollowedFile>& Followed(
      const std::string& run_id) {
    return followed_[run_id];
  }
  void Record(const std::string& run_id, const durable::FollowedFile& file) {
    followed_[run_id].push_back(file);
  }
  // Records of chiefs: of standbys, and of ps that act for lost ones.
  const std::map<int, uint64_t>& standbys() const { return standbys_; }
  void RecordStandbys(const std::map<int, uint64_t>& standbys) {
    standbys_ = standbys;
  }
  const std::map<int, int>& acting_hosts() const { return acting_hosts_; }
  void RecordActing(const std::map<int, int>& hosts) { acting_hosts_ = hosts; }

  // Damages the newest checkpoint, unless no other one is intact or it is the
  // job's last. Returns its step, or -1.
  int64_t DamageNewest();
  // Returns the checkpoint of a step; null if there is none.
  const Checkpoint* Find(int64_t step) const {
    const auto it = checkpoints_.find(step);
    return it == checkpoints_.end() ? nullptr : &it->second;
  }
  // Returns the step of the newest intact checkpoint of a run, or -1.
  int64_t NewestIntact(const std::string& run_id) const;

 private:
  std::map<int64_t, Checkpoint> checkpoints_;
  bool read_errors_ = false;
  bool write_errors_ = false;
  std::vector<Evaluation> evaluations_;
  int owner_ = -1;
  int64_t epochs_ = 0;
  std::map<int, int64_t> ps_epochs_;
  std::map<std::string, std::vector<durable::FollowedFile>> followed_;
  std::map<int, uint64_t> standbys_;
  std::map<int, int> acting_hosts_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_DISK_H_
