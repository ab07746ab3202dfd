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

// The processes of a cluster on this machine, or the connections to those on
// others: starts them, restarts those that die, and stops them. Their stderr
// and stdout go to their log files.
//
// Must be used from one thread. The processes end when that thread ends, or
// this object. Those on other hosts need Poll() or Stop() to be called every
// few seconds.
class Supervisor {
 public:
  enum class State {
    kRunning,
    // The chief has exited with 0: the job is complete, and no task is
    // restarted. A task that has not ended after kFinishLimit is killed.
    kFinishing,
    kEnded,
    // A task has failed for good: see failure(). If it is not the chief, the
    // chief has had kVerdictLimit to end by itself: other tasks may only
    // repeat, with exit code 1, why the job has failed.
    kFailed,
  };

  struct Failure {
    std::string task;
    // Exit code of the task as a shell reports it.
    int exit_code = 0;
    // One line: how the task ended, the reason that its log gives, and the path
    // of the log.
    std::string reason;
  };

  // Longest time for the tasks to end after the chief has ended. The chief has
  // already waited for its tasks to leave; a task that stood still all that
  // time would otherwise look for the chief for minutes.
  static constexpr absl::Duration kFinishLimit = absl::Seconds(20);

  // Longest time for the chief to end after another task has failed.
  static constexpr absl::Duration kVerdictLimit = absl::Seconds(2);

  // `tell` is called with one line for people whenever a task is restarted.
  Supervisor(std::vector<TaskPlan> plans, const RestartLimits& limits,
             std::function<void(const std::string&)> tell, Clock& clock);

  // Starts all tasks. An error names the binary or the log file; the destructor
  // then stops the tasks that are already started.
  absl::Status Start();

  // Checks every process once, and starts the tasks whose restart is due.
  State Poll();

  // Returns the failure; may be called only after Poll() has returned kFailed.
  const Failure& failure() const { return failure_; }

  // Sends SIGTERM in the order in which a cluster drains: first to the tasks
  // that push, then to the chief, which may write a checkpoint, then to the
  // tasks that hold the variables. Sends SIGKILL to all that are left after
  // `limit`, or as soon as `at_once`, which it asks every .1 s, returns true.
  // Names those that it has waited for some seconds. Blocks until all here have
  // ended.
  void Stop(absl::Duration limit, const std::function<bool()>& at_once);

 private:
  struct Task {
    TaskPlan plan;
    RestartPolicy policy;
    // The process; null while the task does not run.
    std::unique_ptr<Subprocess> process;
    absl::Time start_at;
    // Offset in the log file of this process's first byte.
    int64_t log_begin = 0;
    // Time of the next sign of life for a task on another host.
    absl::Time next_beat = absl::InfinitePast();
  };

  absl::Status StartTask(Task& task);
  // Kills all processes that are left kFinishLimit after the job's end.
  void EndStragglers();
  void HandleEnd(Task& task, const ProcessEnd& end);
  void Fail(const Task& task, int exit_code, const std::string& how);
  // Returns true if a task has failed and the chief has nothing to add.
  bool IsFailureKnown() const;
  std::string Reason(const Task& task) const;
  // Gives the guards of tasks on other hosts a sign of life where one is due.
  void Beat();
  // Terminates the processes of `roles` and waits for them. `killed_at`: when
  // all that are left are killed.
  void Drain(const std::vector<std::string>& roles, absl::Time deadline,
             absl::Time killed_at, const std::function<bool()>& at_once);
  // Says of each of `tasks` that it is waited for.
  void NameAwaited(const std::vector<Task*>& tasks, absl::Duration left);

  std::vector<Task> tasks_;
  const std::function<void(const std::string&)> tell_;
  Clock& clock_;
  State state_ = State::kRunning;
  absl::Time finishing_since_ = absl::InfiniteFuture();
  // The time of the first failure; `failure_` is set from then on.
  absl::Time failed_at_ = absl::InfiniteFuture();
  Failure failure_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_SUPERVISOR_H_
