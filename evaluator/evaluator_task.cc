#include "evaluator/evaluator_task.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"
#include "cluster/client/chief_session.h"
#include "cluster/client/same_job.h"
#include "cluster/inspection/task_inspection.h"
#include "cluster/rpc/server.h"

namespace parasol {
namespace {

// Less than half of a lease: one call may go into a dead connection.
constexpr absl::Duration kChiefCallDeadline = absl::Seconds(4);

class Task : public EvaluatorTask {
 public:
  Task(const EvaluatorTaskOptions& options, Clock& clock,
       MetricsRegistry& registry)
      : options_(options),
        clock_(clock),
        registry_(registry),
        inspection_(std::make_shared<TaskInspection>(clock)) {}

  ~Task() override {
    Stop();
    Wait().IgnoreError();  // whoever wanted it has asked before
  }

  absl::Status Listen() {
    if (options_.listen_address.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(
        server_, RpcServer::Start(options_.listen_address, {}, options_.trust));
    return absl::OkStatus();
  }

  void Launch() {
    absl::MutexLock join_lock(&join_mu_);
    thread_ = std::thread([this] {
      absl::Status result = Run();
      absl::MutexLock lock(&mu_);
      result_ = std::move(result);
    });
  }

  absl::Status Wait() override {
    {
      absl::MutexLock lock(&join_mu_);
      if (thread_.joinable()) thread_.join();
    }
    absl::MutexLock lock(&mu_);
    return result_;
  }

  void Stop() override {
    std::shared_ptr<JobEvaluation> evaluation;
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
      evaluation = evaluation_;
    }
    if (evaluation != nullptr) evaluation->Stop();
  }

 private:
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return stopping_;
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(std::unique_ptr<ChiefSession> session, JoinCluster());
    if (server_ != nullptr) server_->SetServing(true);
    inspection_->ShowThisThreadFirst();
    JobEvaluation::Options evaluated = options_.evaluation;
    evaluated.trace = &inspection_->recorder();
    const auto evaluation = std::make_shared<JobEvaluation>(
        evaluated, std::move(session), clock_, registry_);
    {
      absl::MutexLock lock(&mu_);
      evaluation_ = evaluation;
    }
    if (IsStopping()) evaluation->Stop();
    return evaluation->Run();
  }

  absl::StatusOr<std::unique_ptr<ChiefSession>> JoinCluster() {
    ChiefSession::Options options;
    options.task = options_.task;
    options.metrics_address = options_.metrics_address;
    options.chief_timeout = options_.chief_timeout;
    options.inspection = inspection_;
    options.on_registered = CheckEvaluatorGoesOn;
    options.checkpoint_directory = options_.evaluation.checkpoint_directory;
    return ChiefSession::Join(
        ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                            Callee::Chief(options_.trust)),
        std::move(options), clock_, registry_, [this] { return IsStopping(); });
  }

  const EvaluatorTaskOptions options_;
  Clock& clock_;
  MetricsRegistry& registry_;
  const std::shared_ptr<TaskInspection> inspection_;
  std::unique_ptr<RpcServer> server_;

  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<JobEvaluation> evaluation_ ABSL_GUARDED_BY(mu_);

  absl::Mutex join_mu_;  // two callers of Wait()
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<EvaluatorTask>> EvaluatorTask::Start(
    const EvaluatorTaskOptions& options, Clock& clock,
    MetricsRegistry& metrics) {
  auto task = std::make_unique<Task>(options, clock, metrics);
  RETURN_IF_ERROR(task->Listen());
  task->Launch();
  return task;
}

}  // namespace parasol
