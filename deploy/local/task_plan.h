#ifndef PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
#define PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_

#include <string>
#include <vector>

// The processes of a job on this machine, and the way to start each.
namespace parasol {

// The user's request. All paths are absolute.
struct LocalJob {
  std::string job_file;
  std::string data_dir;
  std::string checkpoint_dir;
  std::string log_dir;
  // Folder of the binaries ps/ps, worker/worker, chief/chief and
  // evaluator/evaluator.
  std::string bin_dir;
  // Binaries that replace those of bin_dir, e.g. with a custom layer; empty:
  // bin_dir's are used.
  std::string worker_binary;
  std::string evaluator_binary;
  std::string device;
  // Number of CPU threads of each worker and of the evaluator.
  int threads = 1;
  // 0: the workers train under multi_worker_mirrored, and worker/0 does the
  // chief's duties.
  int num_ps = 1;
  int num_workers = 1;
  bool has_evaluator = true;
  // Number of training examples in a step.
  int batch_size = 0;
  // True if the job goes on after a loss that is not finite, so that the ps
  // must accept the gradients of such a step.
  bool applies_non_finite = false;
  // The chief's --strategy; empty: the job's.
  std::string strategy;
  // The chief's --checkpoint_timeout; empty: its default.
  std::string checkpoint_timeout;
  // Overrides "path=value", in the order given.
  std::vector<std::string> overrides;
};

struct TaskPlan {
  // Name of the task's role: "chief", "ps", "worker", "evaluator".
  std::string role;
  // True if the task has the chief, or is it: it ends with the job.
  bool leads_job = false;
  // Name of the task, like "ps/0".
  std::string name;
  std::vector<std::string> argv;
  std::string tf_config;
  // Address "127.0.0.1:port" of the task's metrics.
  std::string metrics_address;
  std::string log_file;
};

struct LocalPlan {
  std::string chief_address;
  // Tasks in the order in which they are started: chief, ps, worker, evaluator,
  // or without ps worker, evaluator.
  std::vector<TaskPlan> tasks;
};

// Returns the number of ports that PlanTasks() needs.
int NumPorts(const LocalJob& job);

// Returns the plan for `job`. `ports` are NumPorts(job) free ports of the
// loopback interface. The evaluator has no address and is not in TF_CONFIG's
// cluster, as in TensorFlow.
LocalPlan PlanTasks(const LocalJob& job, const std::vector<int>& ports);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
