#ifndef PARASOL_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_
#define PARASOL_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/coordinator.h"
#include "gtest/gtest.h"

namespace parasol::coordinator_testing {

inline constexpr char kRun[] = "run-a";
inline constexpr uint64_t kLayout = 5;

inline wire::Task Task(const std::string& role, int index,
                       uint64_t incarnation) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

// A fixture with two ps and two workers, whose incarnations are 10 + index and
// 20 + index, an evaluator, and a job of 100 steps with a checkpoint every 10.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    job::Job& job = options_.job;
    job.mutable_end()->set_steps(100);
    job.mutable_checkpoint()->set_every_steps(10);
    options_.run_id = kRun;
    options_.layout = kLayout;
    options_.shards = {{0, "p0:1", {}}, {1, "p1:1", {}}};
    options_.tasks = {{{"ps", 0}, "p0:1"},
                      {{"ps", 1}, "p1:1"},
                      {{"worker", 0}, "w0:1"},
                      {{"worker", 1}, "w1:1"},
                      {{"evaluator", 0}, ""}};
  }

  Coordinator& chief() {
    if (!chief_) chief_.emplace(options_, now_);
    return *chief_;
  }

  void Resume(int64_t step) {
    options_.resumed.emplace();
    options_.resumed->set_global_step(step);
    options_.resumed->set_run_id(kRun);
  }

  absl::Status Register(const wire::Task& task, const std::string& run = "",
                        int64_t completed = 0) {
    wire::RegisterRequest request;
    *request.mutable_task() = task;
    request.set_run_id(run);
    if (!run.empty()) request.set_layout(layout_);
    request.set_completed_steps(completed);
    return chief().Register(request, now_).status();
  }
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(const wire::Task& task) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = task;
    if (loaded_.contains(task.incarnation())) {
      request.set_run_id(kRun);
      request.set_layout(kLayout);
    }
    return chief().Heartbeat(request, now_);
  }
  absl::StatusOr<wire::GetPlacementResponse> Placement(const wire::Task& task) {
    wire::GetPlacementRequest request;
    *request.mutable_task() = task;
    return chief().GetPlacement(request);
  }
  absl::StatusOr<wire::GetPlacementResponse> Placement() {
    return Placement(worker0_);
  }
  // Claims as a worker with no step in flight does that has heard of the
  // version of its grants.
  absl::StatusOr<wire::ClaimStepsResponse> Claim(const wire::Task& worker,
                                                 int64_t completed,
                                                 int64_t want,
                                                 int64_t examples = 0) {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = worker;
    request.set_completed_steps(completed);
    request.set_want(want);
    request.set_started_steps(completed);
    request.set_granted_steps(completed);
    request.set_pushed_steps(completed);
    request.set_train_examples(examples);
    int64_t& version = versions_[worker.incarnation()];
    while (true) {
      request.set_assignment_version(version);
      auto response = chief().ClaimSteps(request, now_);
      if (!response.ok() || response->assignment_version() == version ||
          response->granted_steps() > completed) {
        if (response.ok()) version = response->assignment_version();
        return response;
      }
      version = response->assignment_version();
    }
  }
  absl::Status Leave(const wire::Task& task, int64_t completed = 0) {
    wire::LeaveRequest request;
    *request.mutable_task() = task;
    request.set_completed_steps(completed);
    return chief().Leave(request, now_);
  }
  wire::HeartbeatResponse LeavingHeartbeat(const wire::Task& ps) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = ps;
    request.set_run_id(kRun);
    request.set_layout(kLayout);
    request.set_leaving(true);
    return chief().Heartbeat(request, now_).value();
  }
  // The first one of a ps, after which the chief waits for a moment.
  wire::HeartbeatResponse AskToLeave(const wire::Task& ps) {
    wire::HeartbeatResponse response = LeavingHeartbeat(ps);
    EXPECT_FALSE(HasOrder()) << "workers may yet report steps";
    now_ += kLeaveDelay;
    return response;
  }
  void RegisterPs(const std::string& run = "") {
    ASSERT_OK(Register(ps0_, run));
    ASSERT_OK(Register(ps1_, run));
  }
  void RegisterWorkers() {
    ASSERT_OK(Register(worker0_));
    ASSERT_OK(Register(worker1_));
  }
  // Tells the chief to stop, and lets the time go by in which it waits for the
  // workers' last steps.
  void Stop() {
    chief().RequestStop(now_);
    now_ += kLastStepsLimit;
  }
  CallsInVain Tick() {
    Coordinator::Ticked ticked = chief().Tick(now_);
    warnings_.insert(warnings_.end(), ticked.warnings.begin(),
                     ticked.warnings.end());
    return ticked.in_vain;
  }
  // Returns the warnings that have come up since the last call.
  std::vector<std::string> TakeWarnings() {
    Tick();
    return std::exchange(warnings_, {});
  }
  // Lets time go by, in which `alive` renew their leases.
  void Pass(absl::Duration duration, const std::vector<wire::Task>& alive) {
    for (absl::Duration step = absl::Seconds(2);
         duration > absl::ZeroDuration(); duration -= step) {
      now_ += std::min(step, duration);
      for (const wire::Task& task : alive) EXPECT_OK(Heartbeat(task));
      Tick();
    }
  }

  // Returns the next order, which must be of this kind; does not carry it out.
  LoadOrder NextLoad() {
    auto order = chief().NextOrder(now_);
    if (order && std::holds_alternative<LoadOrder>(*order)) {
      return std::get<LoadOrder>(*order);
    }
    ADD_FAILURE() << "no load is ordered";
    return {};
  }
  CheckpointOrder NextCheckpoint() {
    auto order = chief().NextOrder(now_);
    if (order && std::holds_alternative<CheckpointOrder>(*order)) {
      return std::get<CheckpointOrder>(*order);
    }
    ADD_FAILURE() << "no checkpoint is ordered";
    return {};
  }
  bool HasOrder() { return chief().NextOrder(now_).has_value(); }

  void LoadDone(const LoadOrder::Target& target, const absl::Status& status) {
    chief().Done(LoadResult{target, status}, now_);
  }
  void CheckpointDone(const CheckpointOrder& order,
                      const absl::Status& status) {
    chief().Done(CheckpointResult{order, status}, now_);
  }
  void FinishLoad(const LoadOrder& order) {
    for (const auto& target : order.targets) {
      loaded_.insert(target.incarnation);
      LoadDone(target, absl::OkStatus());
    }
  }
  // Registers ps that hold their shards, as with a chief that has restarted.
  void BringBackPs() {
    RegisterPs(kRun);
    FinishLoad(NextLoad());
  }
  // Carries out what a new run needs before it trains.
  void StartTraining() {
    RegisterPs();
    RegisterWorkers();
    FinishLoad(NextLoad());
    CheckpointDone(NextCheckpoint(), absl::OkStatus());
    ASSERT_EQ(phase(), wire::TRAINING);
  }
  // Makes one worker do all the steps up to `step`.
  void TrainTo(int64_t step) {
    int64_t completed = 0;
    while (completed < step) {
      ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, completed, 1000));
      ASSERT_GT(claim.granted_steps(), completed);
      completed = std::min(step, claim.granted_steps());
    }
    ASSERT_OK(Claim(worker0_, completed, 0));
  }

  wire::JobPhase phase() { return chief().Status(now_).phase(); }
  std::optional<absl::Status> outcome() { return chief().Outcome(now_); }

  const wire::Task ps0_ = Task("ps", 0, 10);
  const wire::Task ps1_ = Task("ps", 1, 11);
  const wire::Task worker0_ = Task("worker", 0, 20);
  const wire::Task worker1_ = Task("worker", 1, 21);
  const std::vector<wire::Task> everyone_ = {ps0_, ps1_, worker0_, worker1_};
  // The layout that those who register with a run say.
  uint64_t layout_ = kLayout;
  // The ps incarnations that say in heartbeats that they hold their shards.
  std::set<uint64_t> loaded_;
  Coordinator::Options options_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::optional<Coordinator> chief_;
  std::vector<std::string> warnings_;
  std::map<uint64_t, int64_t> versions_;  // key: worker incarnation
};

}  // namespace parasol::coordinator_testing

#endif  // PARASOL_COORDINATOR_TESTING_COORDINATOR_FIXTURE_H_
