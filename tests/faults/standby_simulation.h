#ifndef PARASOL_TESTS_FAULTS_STANDBY_SIMULATION_H_
#define PARASOL_TESTS_FAULTS_STANDBY_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/shards/standby_board.h"
#include "parameters/client/shard_operation.h"
#include "parameters/client/shard_outbox.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/journal/push_journal.h"
#include "ps/journal/standby_feed.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_state.h"
#include "ps/standby/standby_duty.h"
#include "ps/standby/standby_host.h"

namespace parasol {

// Simulates workers that push to a shard which has a standby, as one
// deterministic run of a random schedule: real outboxes, shards, feeds, duties,
// a real host of standbys and the chief's real board, between which messages
// are delayed, lost and overtaken. No threads, no sockets, no time.
//
// The shard's process is lost, or stopped and continued while its successor has
// taken the standby; the standby's process is lost; the stream between the two
// is cut; the chief is lost before or after it has recorded what it decides.
// Not both processes at once, so what the chief has kept is always there, but
// for a shard with a journal: that is restored from checkpoint and journal
// then. A successor may be on another machine, which has a disk, and an older
// journal, of its own.
//
// All gradients are small integers and the optimizer subtracts them.
class StandbySimulation {
 public:
  // Ways to break the system on purpose, to test that the simulation notices.
  enum class Mutant {
    kNone,
    // Pushes are acknowledged before the standby holds them.
    kAcknowledgesBeforeHeld,
    // A shard whose standby is lost goes on without asking the chief.
    kGoesOnAlone,
    // The standby takes pushes of a process whose successor has its state.
    kTakesFromTheOldPrimary,
    // A shard is restored from a standby that was given up.
    kRestoresWhatWasGivenUp,
    // A successor does not know which pushes were applied.
    kForgetsWindows,
    // The chief answers before it has recorded what it keeps.
    kAnswersBeforeItRecords,
    // A successor that takes the standby goes on with a journal that lacks what
    // the standby has.
    kTakesAnyJournal,
    // A successor that takes the standby begins a new journal.
    kForgetsTheJournal,
  };
  struct Options {
    uint64_t seed = 0;
    size_t workers = 2;
    size_t lanes = 2;
    size_t pushes = 30;  // number for each worker
    // Expected numbers of these events in a thousand steps.
    size_t stream_ends = 20;
    size_t cuts = 6;
    size_t takeovers = 6;
    size_t host_losses = 3;
    size_t chief_losses = 3;
    // Expected number of standbys that are made when they may be, of a thousand
    // occasions.
    size_t makes = 1000;
    // Folder for checkpoints and journals; empty: the shard has no journal.
    // Expected numbers of events in a thousand steps, then: checkpoints, losses
    // of both processes; and of a thousand successors so many come on the other
    // machine, or find that theirs has lost its power and the journal's end.
    std::string directory = {};
    size_t saves = 6;
    size_t losses_of_all = 3;
    size_t moves = 100;
    size_t tears = 100;
    Mutant mutant = Mutant::kNone;
  };
  struct Report {
    // True if every push was acknowledged before the step limit.
    bool complete = false;
    // Values of the shard, and the sums of the acknowledged pushes.
    std::vector<float> values;
    std::vector<float> acknowledged;
    // Numbers of the events that the simulation is meant to test.
    size_t takeovers = 0;
    size_t cuts = 0;
    size_t host_losses = 0;
    size_t chief_losses = 0;
    size_t losses_of_all = 0;
    size_t moves = 0;
    size_t tears = 0;
    size_t synced = 0;  // times that the chief has kept a standby
    size_t duplicates = 0;
  };

  explicit StandbySimulation(const Options& options);
  // Runs the simulation. May be called once.
  Report Run();

 private:
  using Message = ShardOutbox::Message;

  struct Host {
    explicit Host(uint64_t incarnation)
        : incarnation(incarnation),
          standbys({.task = "ps/1", .incarnation = incarnation}) {}
    const uint64_t incarnation;
    StandbyHost standbys;
  };
  // A process that has, or had, the shard.
  struct Process {
    int64_t epoch = 0;
    bool is_alive = true;
    std::shared_ptr<ParameterShard> shard;
    StandbyDuty duty;
    // The stream to its standby; null: there is none.
    std::unique_ptr<StandbyHost::Stream> stream;
    std::deque<wire::FollowRequest> to_standby;
    std::deque<wire::FollowResponse> from_standby;
    int64_t report = 0;  // number of the last report
    // Records that a standby which does not refuse it would hold.
    std::optional<int64_t> held_by_mutant;
  };
  struct Stream {
    std::shared_ptr<Process> to;
    std::deque<Message> to_shard;
    std::shared_ptr<std::vector<uint64_t>> to_worker =
        std::make_shared<std::vector<uint64_t>>();
  };
  struct Worker {
    Worker(size_t lanes, const ShardOutbox::Limits& limits)
        : outbox(lanes, limits), streams(lanes) {}
    uint64_t incarnation = 0;
    ShardOutbox outbox;
    std::vector<Stream> streams;
    std::vector<Stream> ghosts;
    size_t started = 0;
  };
  struct SentReport {
    std::shared_ptr<Process> from;
    int64_t number = 0;
    wire::HeartbeatRequest request = {};
  };
  struct SentAnswer {
    std::shared_ptr<Process> to;
    int64_t number = 0;
    wire::HeartbeatResponse answer = {};
  };

  void Step();
  void StepOfWorker();
  void StepOfStandby();
  void Fault();

  void StartPush(Worker& worker);
  void Transmit(Worker& worker, size_t lane);
  void Deliver(Worker& worker, Stream& stream);
  void Acknowledge(Worker& worker, size_t lane);
  void EndStream(Worker& worker, size_t lane);
  void DeliverLate(Worker& worker);

  void Make(Process& process);
  void SendToStandby(Process& process);
  void DeliverToStandby(Process& process);
  void HearStandby(Process& process);
  void LoseStandby(Process& process);
  void UseRule(Process& process);
  void SendReport(const std::shared_ptr<Process>& process);
  void ChiefHears();
  void HearChief();

  void TakeOver();
  void LoseHost();
  void LoseChief();
  // Writes a checkpoint.
  void Save();
  void LoseAll();
  // Has a successor's shard, which was taken from the standby, keep a journal.
  void GoOnWithJournal(const JournalEnd& in_journal, bool may_be_torn,
                       ParameterShard& shard);
  // Returns the order by which the shard is loaded, and where its journal is.
  wire::LoadRequest Order() const;
  LoadLimits Limits() const;
  std::string Checkpoints() const {
    return absl::StrCat(options_.directory, "/checkpoints");
  }
  // Workers find the process that has the shard now.
  void EndStreamsTo(const Process& former);
  std::shared_ptr<Process> NewProcess(std::shared_ptr<ParameterShard> shard,
                                      uint64_t kept);
  std::shared_ptr<ParameterShard> ShardOf(ShardState& state) const;
  bool IsComplete() const;
  size_t Below(size_t n) { return random_() % n; }

  const Options options_;
  std::mt19937_64 random_;
  SimulatedClock clock_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  const std::shared_ptr<const Call> call_;
  std::vector<std::unique_ptr<Host>> hosts_;         // the last one is there
  std::vector<std::shared_ptr<Process>> processes_;  // the last one has it
  StandbyBoard board_;
  StandbyBoard::Kept disk_;
  uint64_t last_kept_ = 0;  // the last standby that the chief has kept
  int64_t step_ = 0;        // newest checkpoint; 0: there is none
  int machine_ = 0;         // machine of the shard's process
  // Nothing that was acknowledged is missing in the newest checkpoint and the
  // journal that follows it.
  bool is_journal_whole_ = true;
  std::vector<SentReport> reports_;
  std::vector<SentAnswer> answers_;
  std::vector<Worker> workers_;
  Report report_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_STANDBY_SIMULATION_H_
