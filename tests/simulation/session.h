#ifndef PARASOL_TESTS_SIMULATION_SESSION_H_
#define PARASOL_TESTS_SIMULATION_SESSION_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// The chief's answer to a registration, as far as the simulation needs it.
struct Registration {
  std::string run_id;
  uint64_t layout = 0;
  int64_t chief_epoch = 0;
  int64_t place_epoch = 0;
  JobChoice job;
};

// A task's registration with the chief and its heartbeats: the model of
// ChiefSession.
class Session {
 public:
  struct Callbacks {
    std::function<void(wire::RegisterRequest&)> describe;
    std::function<void(wire::HeartbeatRequest&)> report;
    // Called for each answer to a registration.
    std::function<void(const Registration&)> on_registered;
    std::function<void(const wire::HeartbeatResponse&)> on_state;
    // The session is lost for good.
    std::function<void(const absl::Status&)> on_lost;
  };

  Session(World& world, Process& task, Callbacks callbacks)
      : world_(world), task_(task), callbacks_(std::move(callbacks)) {}

  void Join();
  // Time since the chief's last answer, if the call since has failed; 0 if not.
  absl::Duration silence() const;
  // Sends a heartbeat at once, beside the others.
  void Hurry() { Heartbeat(/*goes_on=*/false); }
  // Tells the chief that the task ends, once, then calls `done`.
  void Leave(int64_t completed_steps, std::function<void()> done);
  // Does the same, and then ends the process.
  void LeaveAndExit(int64_t completed_steps, const absl::Status& result);
  // Tells the chief of an error that ends the job. Calls `done` when it has
  // heard of it, or does not answer.
  void ReportFailure(const absl::Status& failure, std::function<void()> done);

  // The answer to the first registration.
  const Registration& registration() const { return registration_; }
  const wire::HeartbeatResponse& state() const { return state_; }
  int64_t place_epoch() const { return place_epoch_; }
  absl::Time last_answer() const { return last_answer_; }

 private:
  void Register();
  // `goes_on`: the next one follows.
  void Heartbeat(bool goes_on = true);
  // Returns OK if an answer comes from the newest chief that is known.
  absl::Status CheckChief(int64_t chief_epoch);
  void AfterFailure(const absl::Status& error, bool was_registering);
  absl::Duration Interval() const;

  World& world_;
  Process& task_;
  const Callbacks callbacks_;
  bool has_left_ = false;
  bool is_registered_ = false;
  Registration registration_;
  int64_t place_epoch_ = 0;
  // The newest chief that has answered.
  int64_t chief_epoch_ = 0;
  wire::HeartbeatResponse state_;
  absl::Time joined_at_, last_answer_;
  // True if the last heartbeat had no answer.
  bool is_silent_ = false;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SESSION_H_
