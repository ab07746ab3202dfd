#ifndef PARASOL_TESTS_SIMULATION_STANDBY_LINK_H_
#define PARASOL_TESTS_SIMULATION_STANDBY_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/task_id.h"
#include "proto/chief.pb.h"
#include "ps/journal/standby_feed.h"
#include "ps/standby/standby_duty.h"
#include "tests/simulation/hosted_standbys.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

class PsProcess;

// Returns the place at which the process of an address is: "ps-1" is of
// ps/1, "acting-7" a ps that acts for a lost one, process 7.
TaskId PlaceOf(const std::string& address);

// A ps's shard and its standby: the model of StandbyKeeper and StandbyFeed,
// with the real StandbyDuty.
class StandbyLink {
 public:
  using Done = std::function<void(const absl::Status&)>;

  struct Callbacks {
    // Fills in a heartbeat, but for the report.
    std::function<void(wire::HeartbeatRequest&)> describe;
    std::function<void(const wire::HeartbeatResponse&)> on_answer;
    // Returns the shard's state.
    std::function<ShardValues()> state;
    std::function<int64_t()> place_epoch;
  };

  StandbyLink(World& world, PsProcess& ps, Callbacks callbacks)
      : world_(world), ps_(ps), callbacks_(std::move(callbacks)) {}

  void Start() { Look(); }
  // The ps has been loaded: see StandbyDuty.
  void Loaded(bool is_new, uint64_t kept);
  // Calls `done` when the push, which has been applied, may be acknowledged, or
  // with Unavailable. `record`: null if it had been applied before.
  void Append(const StandbyRecord* record, Done done);
  // Returns true if the chief has kept the shard's standby, and the process is
  // there that has it. (One that stands still may be replaced for that.)
  bool IsProtected() const;
  // The process has ended: its connections are closed.
  void End();
  // Tells the standby's process that the stream has ended; this one learns that
  // with its next record.
  void EndAtHost();

 private:
  struct Waiting {
    int64_t stream = 0;  // 0: none
    int64_t record = 0;  // 0: the state has it
    Done done;
  };

  // Looks what is to be done, now and then.
  void Look();
  void Report();
  void Make(const wire::StandbyPlace& place);
  void Send();
  void Hear();
  void Lose();
  void CloseStream();
  void Release();
  PsProcess* Host() const;

  World& world_;
  PsProcess& ps_;
  const Callbacks callbacks_;
  SimulatedClock clock_;
  // Says nothing: the duty asks how many records there are.
  StandbyFeed feed_{clock_};
  StandbyDuty duty_;
  bool is_reporting_ = false;
  absl::Time next_report_ = absl::InfinitePast();
  int64_t chief_epoch_ = 0;
  // The stream that there is (0: none), and the number of streams.
  int64_t stream_ = 0;
  int64_t streams_ = 0;
  wire::StandbyPlace place_;
  uint64_t number_ = 0;  // 0: it has not joined
  int64_t joined_at_ = 0;
  std::vector<StandbyRecord> queue_;
  int64_t appended_ = 0;
  int64_t sent_ = 0;
  int64_t held_ = 0;
  bool is_sending_ = false;
  std::deque<Waiting> waiting_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_STANDBY_LINK_H_
