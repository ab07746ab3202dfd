#ifndef PARASOL_LOOP_PEERS_GROUP_PEERS_H_
#define PARASOL_LOOP_PEERS_GROUP_PEERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "loop/peers/peer_watch.h"
#include "loop/peers/peers.h"
#include "loop/peers/program_chief.h"
#include "loop/peers/program_settings.h"
#include "worker/group/state/group_state.h"

namespace parasol {

// A process of a program that runs on each worker of a cluster. All of them are
// one group, in which sums are added: a program's replicas can't be computed by
// others, so it goes on when all are there, and waits for one that is missing.
// Worker 0 has the checkpoints and the record (ProgramChief).
//
// Each process has a copy of the values as they were committed (GroupState).
// When one is lost in the middle of an iteration, the others can't take back
// what the program has done since: each keeps its copy and starts anew, with
// the same arguments, and all go on with the furthest copy that is left. One
// that comes back when the program has ended finds its last checkpoint.
class GroupPeers : public Peers {
 public:
  struct Options {
    int rank = 0;  // the worker's index
    // The workers' addresses, and bytes that only they know.
    std::vector<std::string> addresses;
    std::string secret = {};
    int replicas = 1;  // of each process
    ProgramSettings settings = {};
    // Makes this process's endpoint. Called again and again, each time the one
    // before is gone.
    std::function<absl::StatusOr<std::unique_ptr<CollectiveEndpoint>>()> listen;
    // The copy that the process before this one has kept, if it has.
    Descriptor kept = {};
    // Starts the process anew, with a copy or without one. Returns why it
    // can't.
    std::function<absl::Status(Descriptor kept)> restart;
    // Longest time for one attempt to meet all, and for all of them, and for a
    // process that does not take part. After three attempts the program may
    // have ended.
    absl::Duration join_limit = absl::Seconds(3);
    absl::Duration peer_timeout = absl::Minutes(5);
  };

  // `clock` must outlive this object, as must the store that Begin() is given.
  GroupPeers(Options options, Clock& clock);
  ~GroupPeers() override;

  int rank() const override { return options_.rank; }
  int num_processes() const override {
    return static_cast<int>(options_.addresses.size());
  }
  using Peers::Begin;
  absl::StatusOr<int64_t> Begin(ParameterStore& store,
                                const std::vector<std::string>& parts) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void BeginAllReduce(absl::string_view what,
                      std::vector<Contribution> contributions,
                      absl::Span<float> sum) override;
  absl::Status Await() override;
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view what, absl::string_view own) override;
  TrainingReporter* reporter() override {
    return chief_ == nullptr ? own_reporter_.get() : &chief_->reporter();
  }
  absl::StatusOr<bool> Commit(const Iteration& iteration,
                              ParameterStore& store) override;
  absl::Status End(const absl::Status& result) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Has the first process told how this one goes, which is another.
  void TellFirst();
  void StopTelling();
  // Returns the group of all processes.
  CollectiveGroup Group() const;

  // Meets the others until all have the same values.
  absl::Status Meet() ABSL_LOCKS_EXCLUDED(mu_);
  // Makes one attempt.
  absl::Status TryToMeet() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status GiveUpMeeting(const absl::Status& met) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status StartChief();
  // Has the chief keep what is committed.
  void HandToChief();
  // Notes that Stop() has no meeting to end any more.
  void EndMeeting() ABSL_LOCKS_EXCLUDED(mu_);
  void Leave() ABSL_LOCKS_EXCLUDED(mu_);
  // Gathers without a look at why it has failed.
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view what,
                                                  absl::string_view own);
  // Takes how an operation has ended. Starts the process anew if another one
  // was lost, and returns only if it can't.
  absl::Status Settle(absl::string_view what, const absl::Status& status);
  absl::Status Restart(const absl::Status& why);
  std::string Awaited() const;
  void GiveUp();
  absl::Status EndWell();
  // Writes what is committed to a checkpoint, if this process has them and none
  // has it yet.
  absl::Status SaveCommitted() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all processes with an error of this one, and returns it.
  absl::Status EndAll(const absl::Status& why);

  Options options_;
  Clock& clock_;
  MetricsRegistry own_metrics_;
  std::atomic<bool> stop_requested_ = false;
  // Ends what the chief waits for. Known to all when the processes have met:
  // the next Commit() of all has returned false.
  std::atomic<bool> stops_ = false;
  absl::Mutex mu_;
  bool is_meeting_ ABSL_GUARDED_BY(mu_) = false;
  // The group in which values are agreed on; null: there is none.
  Collective* meeting_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool has_ended_ = false;           // before this process has begun
  ParameterStore* store_ = nullptr;  // the program's; null before Begin()
  std::vector<std::string> parts_;   // Begin()'s
  std::unique_ptr<GroupState> state_;
  std::unique_ptr<ProgramChief> chief_;  // null: another process has it
  bool chief_keeps_state_ = false;       // HandToChief()
  // The times of a process that is not the first one, if that is told; null
  // otherwise.
  std::unique_ptr<TrainingReporter> own_reporter_;
  TrainingReport told_;  // of the thread that tells
  std::unique_ptr<CollectiveEndpoint> endpoint_;
  std::shared_ptr<Collective> collective_;
  std::unique_ptr<PeerWatch> watch_;
  int64_t step_ = 0;      // number of committed iterations
  std::string what_;      // the first of the pending sums
  size_t pending_ = 0;    // their number
  absl::Status failure_;  // of a sum's arguments
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_GROUP_PEERS_H_
