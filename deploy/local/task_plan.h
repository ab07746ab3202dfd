#ifndef PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
#define PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_

#include <string>
#include <vector>

#include "deploy/resolver/hosts.h"

// The processes of a job, and the way to start each.
namespace parasol {

// The user's request. All paths are absolute, and the same on all hosts.
struct LocalJob {
  std::string job_file;
  std::string data_dir;  // or a URI
  // Folder for copies of data in object stores; empty: the tasks' default.
  std::string data_cache_dir = {};
  std::string checkpoint_dir;
  std::string log_dir;
  // Folder of the binaries ps/ps, worker/worker, chief/chief and
  // evaluator/evaluator.
  std::string bin_dir;
  // Binaries that replace bin_dir's, e.g. with a custom layer; empty: bin_dir's
  // are used.
  std::string worker_binary;
  std::string evaluator_binary;
  std::string ps_binary;
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
  // True if one worker without a cluster trains the job, and evaluates it.
  bool is_alone = false;
  // True if the workers have the variables and the ps the sparse tables: each
  // worker is told so.
  bool is_hybrid = false;
  // The --checkpoint_timeout of the task that has the job; empty: its default.
  std::string checkpoint_timeout;
  // Overrides "path=value", in the order given.
  std::vector<std::string> overrides;
  // Folders that the run's token may lie in (cluster/trust/token_store).
  std::vector<std::string> token_folders;
  // The machines that the tasks run on; empty: this one.
  std::vector<Host> hosts;
  // The command that starts a process on one of `hosts`: "ssh -p 2222".
  std::string ssh;
  // The first port that tasks take on each of `hosts`.
  int base_port = 0;
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
  // Address host:port of the task's metrics.
  std::string metrics_address;
  std::string log_file;
  // Bytes that the process is to read first; may be empty.
  std::string first_input = {};
  // True if argv is a connection to the task's host: the task is behind a guard
  // there (deploy/remote/guard_protocol.h), and has its TF_CONFIG in argv.
  bool is_remote = false;
};

struct LocalPlan {
  // The address that answers for the job's status: the chief's, or the address
  // of the worker without a cluster.
  std::string chief_address;
  // Tasks in the order in which they are started: chief, ps, worker, evaluator,
  // or without ps worker, evaluator, or without a cluster one worker.
  std::vector<TaskPlan> tasks;
};

// Returns the roles of the job's tasks, in the order in which they are started.
std::vector<std::string> TaskRoles(const LocalJob& job);

// Returns the number of addresses that PlanTasks() needs.
int NumAddresses(const LocalJob& job);

// Returns the plan for `job`, whose tasks run on this machine as yet.
// `addresses` are NumAddresses(job) free ports, "127.0.0.1:port": one for each
// of TaskRoles(job) but the evaluator (for a worker without a cluster the
// address of its status), then one for the metrics of each. The evaluator has
// no address and is not in TF_CONFIG's cluster, as in TensorFlow.
LocalPlan PlanTasks(const LocalJob& job,
                    const std::vector<std::string>& addresses);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_TASK_PLAN_H_
