#ifndef PARASOL_DEPLOY_LOCAL_SUPERVISOR_H_
#define PARASOL_DEPLOY_LOCAL_SUPERVISOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/subprocess.h"
#include "deploy/local/restart_policy.h"
#include "deploy/local/task_plan.h"

namespace parasol {

// The processes of a cluster on this machine: starts them, starts again those
// that die, stops them. Their stderr and stdout go to their log files.
//
// Belongs to one thread: when that ends, or this object, so do the processes.
class Supervisor {
 public:
  enum class State {
    kRunning,
    // The chief has ended with 0: the job is complete, nobody is restarted, and
    // who has not ended after kFinishLimit is killed.
    kFinishing,
    kEnded,
    // See failure().
    kFailed,
  };

  struct Failure {
    std::string task;
    // What a shell would return for the task.
    int exit_code = 0;
    // How it ended, the reason its log gives, where the log is: one line.
    std::string reason;
  };

  // The chief has waited for its tasks to leave; one that stood still all that
  // time would look for the chief for minutes.
  static constexpr absl::Duration kFinishLimit = absl::Seconds(20);

  // `tell` gets one line for people whenever a task is started again.
  Supervisor(std::vector<TaskPlan> plans, const RestartLimits& limits,
             std::function<void(const std::string&)> tell, Clock& clock);

  // Starts all tasks. An error names the binary or log file; those already
  // started are then stopped by the destructor.
  absl::Status Start();

  // Looks once at every process and starts those whose time has come.
  State Poll();

  // Only when Poll() has returned kFailed.
  const Failure& failure() const { return failure_; }

  // SIGTERM, in the order in which a cluster drains: those who push, the chief
  // (which may write a checkpoint), those who hold the variables. SIGKILL for
  // all that are left after `limit`. Blocks until all have ended.
  void Stop(absl::Duration limit);

 private:
  struct Task {
    TaskPlan plan;
    RestartPolicy policy;
    // Null while it does not run.
    std::unique_ptr<Subprocess> process;
    absl::Time start_at;
    // Where in the log file the words of this process begin.
    int64_t log_begin = 0;
  };

  absl::Status StartTask(Task& task);
  // Kills whoever is left when the job has been complete for long enough.
  void EndStragglers();
  void HandleEnd(Task& task, const ProcessEnd& end);
  void Fail(const Task& task, int exit_code, const std::string& how);
  std::string Reason(const Task& task) const;
  // Terminates the processes of these roles and waits for them.
  void Drain(const std::vector<std::string>& roles, absl::Time deadline);

  std::vector<Task> tasks_;
  const std::function<void(const std::string&)> tell_;
  Clock& clock_;
  State state_ = State::kRunning;
  absl::Time finishing_since_ = absl::InfiniteFuture();
  Failure failure_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_SUPERVISOR_H_
