#include "evaluator/run_evaluator.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/hook/training_hooks.h"
#include "cluster/rpc/server.h"
#include "evaluator/evaluator_task.h"

namespace parasol {
namespace {

EvaluatorTaskOptions TaskOptions(const TaskConfig& config,
                                 const RunEvaluatorOptions& options,
                                 int metrics_port) {
  EvaluatorTaskOptions task;
  task.task = NewTask(config);
  task.chief_address = config.chief_address;
  task.trust = options.trust;
  task.listen_address = options.health_address;
  if (task.listen_address.empty() && !config.address.empty()) {
    task.listen_address = RpcServer::ListenAddress(config.address);
  }
  // A cluster need not list its evaluator.
  task.metrics_address = WithPort(
      config.address.empty() ? options.metrics_address : config.address,
      metrics_port);
  task.chief_timeout = options.chief_timeout;
  task.evaluation = options.evaluation;
  return task;
}

}  // namespace

absl::Status RunEvaluator(const TaskConfig& config,
                          const RunEvaluatorOptions& options,
                          TerminationSignal& signal) {
  NameTaskInLog(absl::StrCat("evaluator/", config.index));
  RETURN_IF_ERROR(
      CheckComputeFlags({.data_dir = options.evaluation.model.data_dir,
                         .device = options.evaluation.model.compute.device,
                         .threads = options.evaluation.model.compute.threads}));
  MetricsRegistry registry;
  ASSIGN_OR_RETURN(const std::unique_ptr<MetricsServer> metrics,
                   MetricsServer::Start(options.metrics_address, registry));
  LOG(INFO) << VersionString() << ", /metrics on port " << metrics->port();
  TrainingHooks hooks({.role = "evaluator", .index = config.index});
  EvaluatorTaskOptions task_options =
      TaskOptions(config, options, metrics->port());
  task_options.evaluation.hooks = &hooks;
  ASSIGN_OR_RETURN(const std::unique_ptr<EvaluatorTask> task,
                   EvaluatorTask::Start(task_options, Clock::Real(), registry));
  signal.OnSignal([&task] { task->Stop(); });
  absl::Status result = task->Wait();
  signal.Disarm();
  return result;
}

}  // namespace parasol
