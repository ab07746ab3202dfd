#ifndef PARASOL_TESTS_SIMULATION_PROCESS_H_
#define PARASOL_TESTS_SIMULATION_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/task_id.h"
#include "proto/chief.pb.h"
#include "tests/simulation/event_loop.h"

namespace parasol::simulation {

class World;

class Process;

// A call between two processes until its caller has the answer.
class PendingCall {
 public:
  // `server` is null if nobody listens.
  PendingCall(Process& client, Process* server, TaskId to,
              absl::Duration deadline)
      : client_(client),
        server_(server),
        to_(std::move(to)),
        deadline_(deadline) {}
  virtual ~PendingCall() = default;

  // Ends the call with an error, unless it has ended.
  virtual void Fail(const absl::Status& status) = 0;
  virtual bool has_ended() const = 0;
  Process& client() const { return client_; }
  Process* server() const { return server_; }
  const TaskId& to() const { return to_; }
  absl::Duration deadline() const { return deadline_; }

 private:
  Process& client_;
  Process* const server_;
  const TaskId to_;
  const absl::Duration deadline_;
};

// A process of the simulated cluster. It may be dead. It may be alive but
// stopped: then what reaches it, its timers included, waits until it goes on.
class Process {
 public:
  Process(World& world, TaskId place, int number);
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  virtual void Start() = 0;
  // Called when the process has ended, however it did.
  virtual void Ended() {}

  const TaskId& place() const { return place_; }
  // Number of the process among all of the schedule, in the order of starts.
  int number() const { return number_; }
  uint64_t incarnation() const { return incarnation_; }
  // Returns how it names itself in calls to the chief.
  virtual wire::Task task() const;
  // Returns the process that shares this one's fate, as a part of it; null:
  // none.
  virtual Process* part() const { return nullptr; }
  // Notes the newest chief that it has heard of.
  void set_chief_epoch(int64_t epoch) { chief_epoch_ = epoch; }
  // Returns "ps/1#7": the place and the process's number.
  std::string name() const;
  bool alive() const { return alive_; }
  bool stopped() const { return stopped_; }
  absl::Time reachable_since() const { return reachable_since_; }
  // Returns true if its port has refused connections for a time.
  bool has_refused() const { return has_refused_; }
  // Returns true if it goes on, and nothing cuts it off.
  bool is_reachable() const {
    return alive_ && !stopped_ && !cut_from_all_ && !cut_from_chief_;
  }

 protected:
  World& world() const { return world_; }

 private:
  friend class World;

  World& world_;
  const TaskId place_;
  const int number_;
  const uint64_t incarnation_;
  int64_t chief_epoch_ = 0;
  bool alive_ = true;
  bool stopped_ = false;
  // The time since which it is stopped or cut.
  absl::Time silent_since_;
  // The time since which it goes on, and is not cut.
  absl::Time reachable_since_ = absl::InfinitePast();
  bool cut_from_chief_ = false;
  bool cut_from_all_ = false;
  bool refuses_ = false;
  bool has_refused_ = false;
  // The clock showed `clock_` at the time `clock_set_`, and has run at this
  // speed since.
  absl::Time clock_, clock_set_;
  double clock_rate_ = 1;
  // Messages and timers that reached the process while it was stopped.
  std::vector<EventLoop::Action> deferred_;
  // The calls that the process makes, and the calls that it serves; ended calls
  // are removed now and then.
  std::vector<std::shared_ptr<PendingCall>> makes_;
  std::vector<std::shared_ptr<PendingCall>> serves_;
  // The process at the other end of each connection, by its place.
  std::map<TaskId, Process*> connections_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_PROCESS_H_
