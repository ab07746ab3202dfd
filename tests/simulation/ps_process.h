#ifndef PARASOL_TESTS_SIMULATION_PS_PROCESS_H_
#define PARASOL_TESTS_SIMULATION_PS_PROCESS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ps/shard/dedup_window.h"
#include "ps/step/step_state.h"
#include "tests/simulation/hosted_standbys.h"
#include "tests/simulation/process.h"
#include "tests/simulation/session.h"
#include "tests/simulation/shard_holder.h"
#include "tests/simulation/shard_values.h"
#include "tests/simulation/standby_link.h"
#include "tests/simulation/sync_shard.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A pull of a whole shard, or a push to it; in synchronous training to one of
// its chunks.
struct Operation {
  std::string run_id = "";
  uint64_t worker = 0;
  // The process that the placement names.
  uint64_t incarnation = 0;
  uint64_t layout = 0;
  // 0: a pull.
  uint64_t sequence = 0;
  StepId step = 0;
  // Synchronous training.
  int64_t min_updates = 0;
  int chunk = 0;
  StepPush push = {};
};

// The answer to an operation.
struct OperationResult {
  Updates updates;
};

// A ps: the model of PsTask and ParameterServer, with the real deduplication.
class PsProcess : public ShardHolder {
 public:
  PsProcess(World& world, int index, int number);
  // One that acts for a lost ps, as a part of the process of another one.
  PsProcess(World& world, const wire::ActingOrder& order, PsProcess& host,
            int number);

  void Start() override;
  wire::Task task() const override;
  Process* part() const override;
  void Ended() override;

  // The standbys of other ps's shards here.
  HostedStandbys& hosted() { return hosted_; }
  const HostedStandbys& hosted() const { return hosted_; }
  // Notes that the stream of a primary has ended.
  void PrimaryIsLost(int shard, uint64_t number);
  // Returns true if its shard has a standby: StandbyLink.
  bool IsProtected() const { return link_.IsProtected(); }
  // Returns true if it has the standby of a primary that may be gone.
  bool HasLostPrimary() const { return !hosted_.LostPrimaries().empty(); }
  // Breaks the stream of its shard's standby, as a proxy may that is between.
  void BreakStream() { link_.EndAtHost(); }

  // SIGTERM: takes no more pushes, and leaves when a checkpoint has the others.
  void Terminate();
  void Load(const LoadCall& call, const World::Done<Nothing>& done) override;
  void Snapshot(
      const SnapshotCall& call,
      const World::Done<std::shared_ptr<const ShardValues>>& done) override;
  void PrepareSnapshot(const SnapshotCall& call,
                       const World::Done<Updates>& done) override;
  void Execute(const Operation& operation,
               const World::Done<OperationResult>& done);

  // Returns what it holds, if anything.
  const ShardValues* held() const { return held_ ? &*held_ : nullptr; }

 private:
  // The process in which it acts, and the order.
  struct Acting {
    PsProcess& host;
    uint64_t order;
  };
  PsProcess(World& world, TaskId place, int index, int number,
            std::optional<Acting> acting);

  void OnState(const wire::HeartbeatResponse& state);
  // The parts of PsProcess (ps/ps_process.h).
  void OnAnswer(const wire::HeartbeatResponse& answer);
  void Act(const wire::ActingOrder& order);
  void AskForLost(absl::Duration pause);
  // Ends when the one that acts here has left.
  void ExitAlone(const absl::Status& result);
  void Describe(wire::HeartbeatRequest& request) const;
  bool Replicates() const { return world().schedule().shape.replicates; }
  // Takes the standby that the order names, if it names one, and loads the
  // shard.
  void TakeStandby(const LoadCall& call, const World::Done<Nothing>& done);
  // `taken`: what the standby had.
  void LoadFrom(const LoadCall& call, std::optional<ShardValues> taken,
                const World::Done<Nothing>& done);
  // Finds an error if it acts for a ps that the chief has just heard.
  void CheckIsLost() const;
  // Says what may be lost, now that the shard's source is a checkpoint.
  void ExcuseWhatIsGone(int shard);
  // Return true if it holds the shard's values, and the job's rules for them.
  bool HoldsValues(const LoadCall& call) const;
  bool Holds(const LoadCall& call) const;
  // Returns OK if an order is meant for this process and comes from no older
  // chief than the newest one that is known.
  absl::Status Admit(uint64_t incarnation, int64_t chief_epoch);
  absl::Status Check(const Operation& operation) const;

  bool IsSynchronous() const;
  void ExecuteStep(const Operation& operation,
                   const World::Done<OperationResult>& done);
  // Goes on where the chief says that the cluster is.
  void GoOn();
  void SnapshotStep(
      int64_t updates, bool stay,
      const World::Done<std::shared_ptr<const ShardValues>>& done);
  // Writes the values of snapshot `number`.
  void Save(std::shared_ptr<const ShardValues> values, int64_t progress,
            int64_t number,
            const World::Done<std::shared_ptr<const ShardValues>>& done);
  // Returns true if a later process runs in its place: nobody asks this one.
  bool IsReplaced() const;

  // Ends; `is_saved`: a checkpoint has its updates.
  void LeaveSaved(bool is_saved);
  // Leaves when a complete checkpoint has its updates; looks now and then.
  void LeaveWhenSaved();
  // Returns true if updates would be lost with it, as far as the disk shows.
  bool IsUnsaved() const {
    return ProgressNow() > loaded_progress_ && !IsSaved() && !WasSaved();
  }
  // Number of its updates, and whether a complete checkpoint has them all.
  int64_t ProgressNow() const;
  bool IsSaved() const;
  // Returns true if an earlier snapshot had them all.
  bool WasSaved() const;
  bool IsOnDisk(const std::shared_ptr<const ShardValues>& values) const;
  // Takes updates again.
  void GoOnTaking();

  const int index_;
  const std::optional<Acting> acting_;
  Session session_;
  StandbyLink link_;
  HostedStandbys hosted_;
  // The newest process that acts here.
  PsProcess* acts_here_ = nullptr;
  bool is_asking_ = false;
  absl::Time lost_at_ = absl::InfinitePast();
  bool is_saved_away_ = false;  // true if it ends, and a checkpoint has all
  bool is_exiting_ = false;
  bool is_sealed_ = false;
  bool stays_ = false;
  int64_t stays_at_ = INT64_MAX;  // synchronous training
  // Number of pushes applied since the load; the progress at the load; number
  // of snapshots; the newest one's progress, and the snapshot.
  int64_t pushes_ = 0;
  int64_t loaded_progress_ = 0;
  int64_t snapshots_ = 0;
  int64_t saved_progress_ = -1;
  std::shared_ptr<const ShardValues> saved_;
  // The newest snapshots, of which `saved_` may be none any more, with their
  // progress.
  std::deque<std::pair<int64_t, std::shared_ptr<const ShardValues>>> before_;
  // The newest chief that is known.
  int64_t chief_epoch_ = 0;
  // The largest number of that chief's loads.
  int64_t load_number_ = 0;
  bool loading_ = false;
  std::optional<ShardValues> held_;
  std::optional<DedupIndex> dedup_;  // present if `held_` is
  // The chunks of what it holds (synchronous training), and the number of the
  // newest hold.
  std::shared_ptr<SyncShard> chunks_;
  int holds_ = 0;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_PS_PROCESS_H_
