#ifndef PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
#define PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_

#include <string>
#include <vector>

// Which processes a job on this machine consists of, and how each is started.
namespace parasol {

// What the user asked for. All paths are absolute.
struct LocalJob {
  std::string job_file;
  std::string data_dir;
  std::string checkpoint_dir;
  std::string log_dir;
  // Holds ps/ps, worker/worker, chief/chief and evaluator/evaluator.
  std::string bin_dir;
  // Instead of bin_dir's, e.g. those with a custom layer; empty: bin_dir's.
  std::string worker_binary;
  std::string evaluator_binary;
  std::string device;
  // Of each worker and of the evaluator.
  int threads = 1;
  int num_ps = 1;
  int num_workers = 1;
  bool has_evaluator = true;
  // Of the training: examples in a step.
  int batch_size = 0;
  // The job goes on with a loss that is not finite, so the ps must take the
  // gradients of such a step.
  bool applies_non_finite = false;
  // "path=value", in the order given.
  std::vector<std::string> overrides;
};

struct TaskPlan {
  // "chief", "ps", "worker", "evaluator".
  std::string role;
  // "ps/0".
  std::string name;
  std::vector<std::string> argv;
  std::string tf_config;
  // "127.0.0.1:port".
  std::string metrics_address;
  std::string log_file;
};

struct LocalPlan {
  std::string chief_address;
  // In the order in which they are started: chief, ps, worker, evaluator.
  std::vector<TaskPlan> tasks;
};

// How many ports PlanTasks takes.
int NumPorts(const LocalJob& job);

// `ports` are NumPorts(job) free ones of the loopback interface. The evaluator
// has no address and is not in TF_CONFIG's cluster, as TensorFlow has it.
LocalPlan PlanTasks(const LocalJob& job, const std::vector<int>& ports);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
