#ifndef PARASOL_TESTS_SIMULATION_WORLD_H_
#define PARASOL_TESTS_SIMULATION_WORLD_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/simulation/auditor.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/event_loop.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// The surroundings of the simulated processes: time, network, disk and the
// auditor.
//
// The network knows connections: one that exists stays with its process, also
// when that is stopped and has a successor; new ones go to the newest process
// of the place, as behind a Kubernetes Service. A call whose connection breaks
// may not reach its server, reach it without an answer, or reach it late, after
// the caller has called again. So messages are lost, delayed, duplicated and
// reordered. Messages between processes that are cut from each other arrive
// when they are not cut any more, as TCP sends them again, unless keepalive has
// ended the connection before.
class World {
 public:
  template <typename Response>
  using Done = std::function<void(absl::StatusOr<Response>)>;

  World(const Schedule& schedule, const Rules& rules);

  const Schedule& schedule() const { return schedule_; }
  const Rules& rules() const { return rules_; }
  EventLoop& loop() { return loop_; }
  Random& random() { return random_; }
  Disk& disk() { return disk_; }
  Auditor& auditor() { return auditor_; }
  const Auditor& auditor() const { return auditor_; }

  // Returns the time on the process's clock.
  absl::Time Now(const Process& process) const;
  // Calls `action` in the process when `delay` has passed on its clock.
  void After(Process& process, absl::Duration delay, EventLoop::Action action);

  // Returns the number of the next process.
  int NextNumber() { return launched_++; }
  // Adds a process to its place and starts it.
  void Launch(std::unique_ptr<Process> process);
  // Returns the newest live process of a place; nullptr if there is none.
  Process* Newest(const TaskId& place) const;
  std::vector<Process*> Live() const;

  // Returns true if the process of this number is, or was, at a place.
  bool WasAt(const TaskId& place, int number) const;
  // Returns true if nobody listens at a place, on a machine that says so, or it
  // looks so.
  bool IsRefused(const TaskId& place) const;

  void Kill(Process& process);
  // Ends the process, and tells nobody: connections to it break by keepalive.
  void LoseMachine(Process& process);
  void Stop(Process& process);
  void Continue(Process& process);
  void CutFromChief(Process& process, bool cut);
  void CutFromAll(Process& process, bool cut);
  // Has a live process look as if nobody listened at its place.
  void Refuse(Process& process, bool refuses);
  // Cuts the processes at these places, now and later ones, from all others;
  // none: reaches all again.
  void Part(std::set<TaskId> far_side);
  void SetClockRate(Process& process, double rate);
  // Injects a fault of the network or the disk, until its end. Returns false
  // for a fault of a task.
  bool Disturb(const Fault& fault);
  // Ends a process with the exit code of `status`.
  void Exit(Process& process, const absl::Status& status);
  // Sets what happens when a process has ended by itself.
  void OnExit(std::function<void(Process&, const absl::Status&)> callback) {
    on_exit_ = std::move(callback);
  }

  // Calls `serve` in the process at `to`, which answers through its argument,
  // then `done` in the client: exactly once, unless the client is dead.
  //   Unavailable       no process listens, or the connection broke.
  //   DeadlineExceeded  there was no answer.
  template <typename Server, typename Response>
  void Call(Process& client, const TaskId& to, absl::Duration deadline,
            std::function<void(Server&, Done<Response>)> serve,
            Done<Response> done);
  // Ends the client's calls to a place with Unavailable; its next call finds
  // the newest process there.
  void DropConnection(Process& client, const TaskId& to);
  // Drops the client's connection to a place if it leads to another process
  // than `incarnation`.
  void DropOtherConnection(Process& client, const TaskId& to,
                           uint64_t incarnation);
  // Ends the client's calls to a place with Cancelled.
  void CancelCalls(Process& client, const TaskId& to);

  // Carries a message that is no call: calls `action` in the process `to`. Two
  // messages may overtake each other.
  void Send(Process& from, Process& to, EventLoop::Action action) {
    Carry(from, to, DrawLatency(), std::move(action));
  }

  // Keeps a line for the trace, if one is wanted.
  template <typename... Parts>
  void Trace(const Process* process, const Parts&... parts) {
    if (trace_) AddTrace(process, absl::StrCat(parts...));
  }
  void EnableTrace() { trace_ = true; }
  const std::vector<std::string>& trace() const { return lines_; }

 private:
  template <typename Response>
  class TypedCall;
  // A message that waits until a cut ends.
  struct Held {
    Process& from;
    Process& to;
    EventLoop::Action action;
  };
  // Ways in which the network treats a call.
  enum class Fate { kAnswered, kRequestLost, kAnswerLost, kLate };

  void Dispatch(Process& process, EventLoop::Action action);
  void Post(Process& process, absl::Duration delay, EventLoop::Action action);
  // Returns the process that the client's connection leads to, if any.
  Process* Route(Process& client, const TaskId& to);
  bool IsCut(const Process& a, const Process& b) const;
  Fate DrawFate();
  absl::Duration DrawLatency();
  void Keep(const std::shared_ptr<PendingCall>& call);
  // Delivers a message, when nothing cuts the processes from each other.
  void Carry(Process& from, Process& to, absl::Duration delay,
             EventLoop::Action action);
  void CarryHeld();
  // Sets the alarm of a call's deadline. Calls that are answered at once have
  // none.
  void ArmDeadline(const std::shared_ptr<PendingCall>& call);
  // Ends the connections of a process that does not answer, unless it does
  // before keepalive's limit.
  void WatchKeepalive(Process& process);
  void Silenced(Process& process);
  void BreakCalls(Process& process);
  void Expire(PendingCall& call);
  void End(Process& process);
  void AddTrace(const Process* process, std::string line);

  const Schedule& schedule_;
  const Rules& rules_;
  EventLoop loop_;
  Random random_;
  Disk disk_;
  Auditor auditor_;
  uint64_t loss_;
  int launched_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<TaskId, std::vector<Process*>> places_;
  std::vector<Held> held_;
  std::set<TaskId> far_side_;
  std::function<void(Process&, const absl::Status&)> on_exit_;
  bool trace_ = false;
  std::vector<std::string> lines_;
};

template <typename Response>
class World::TypedCall : public PendingCall {
 public:
  TypedCall(Process& client, Process* server, const TaskId& to,
            absl::Duration deadline, Done<Response> done)
      : PendingCall(client, server, to, deadline), done_(std::move(done)) {}

  void Fail(const absl::Status& status) override { Finish(status); }
  bool has_ended() const override { return done_ == nullptr; }
  void Finish(absl::StatusOr<Response> response) {
    if (done_ == nullptr) return;
    std::exchange(done_, nullptr)(std::move(response));
  }

 private:
  Done<Response> done_;
};

template <typename Server, typename Response>
void World::Call(Process& client, const TaskId& to, absl::Duration deadline,
                 std::function<void(Server&, Done<Response>)> serve,
                 Done<Response> done) {
  Process* const server = Route(client, to);
  auto call = std::make_shared<TypedCall<Response>>(client, server, to,
                                                    deadline, std::move(done));
  Keep(call);
  const auto fail_soon = [&] {
    Post(client, DrawLatency(), [call] {
      call->Fail(absl::UnavailableError("the connection broke"));
    });
  };
  if (server == nullptr) return fail_soon();
  const Fate fate = DrawFate();
  const bool is_answered = fate == Fate::kAnswered;
  if (!is_answered) fail_soon();
  if (fate == Fate::kRequestLost) return;
  if (server->stopped_ || IsCut(client, *server)) ArmDeadline(call);
  Done<Response> answer = [this, server, call,
                           is_answered](absl::StatusOr<Response> response) {
    if (!is_answered || !server->alive_) return;
    Carry(*server, call->client(), DrawLatency(),
          [call, response = std::move(response)]() mutable {
            call->Finish(std::move(response));
          });
  };
  const absl::Duration late =
      fate == Fate::kLate
          ? random_.Between(absl::Milliseconds(10), absl::Seconds(8))
          : absl::ZeroDuration();
  Carry(client, *server, DrawLatency() + late,
        [server, serve = std::move(serve), answer = std::move(answer)] {
          serve(static_cast<Server&>(*server), answer);
        });
}

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_WORLD_H_
