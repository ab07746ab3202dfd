#ifndef PARASOL_COORDINATOR_TESTING_JOB_PARTS_H_
#define PARASOL_COORDINATOR_TESTING_JOB_PARTS_H_

#include <cstdint>
#include <optional>

#include "coordinator/coordinator_options.h"
#include "coordinator/job_phases.h"
#include "coordinator/job_view.h"
#include "coordinator/membership.h"
#include "coordinator/orders.h"
#include "coordinator/shards/shard_board.h"
#include "coordinator/steps/run_evaluations.h"
#include "coordinator/steps/step_grants.h"
#include "gtest/gtest.h"

namespace parasol::coordinator_testing {

// A fixture with the parts of a coordinator, without one: a job of 100 steps
// with a checkpoint every 10, two shards, on ps 10 and 11, and a place for a
// worker.
class JobPartsTest : public testing::Test {
 protected:
  JobPartsTest() {
    options_.job.mutable_end()->set_steps(100);
    options_.job.mutable_checkpoint()->set_every_steps(10);
    options_.run_id = "run";
    options_.shards = {{0, "p0:1", {}}, {1, "p1:1", {}}};
    options_.tasks = {{{"ps", 0}, ""}, {{"ps", 1}, ""}, {{"worker", 0}, ""}};
    worker_.set_role("worker");
    worker_.set_incarnation(20);
  }

  // Makes the parts, in LOADING, of a new run or of one that goes on at a step.
  void Start(std::optional<int64_t> step = std::nullopt) {
    if (step) options_.resumed.emplace().set_global_step(*step);
    membership_.emplace(MembershipOf(options_), now_);
    board_.emplace(options_.shards, 1);
    grants_.emplace(options_.job, PlanOf(options_, now_), GrantsOf(options_));
    phases_.emplace(JobPhases::Options{.finish_timeout = absl::Seconds(30)},
                    now_);
    evaluations_.emplace(options_.job, EvaluationsOf(options_), now_);
    orders_.emplace(options_, std::nullopt, now_);
    for (int i = 0; i < 2; ++i) board_->Arrived(i, 10 + i, false);
    phases_->Enter(wire::LOADING, now_);
  }
  Orders::Job ForOrders() const {
    return {.phases = *phases_,
            .membership = *membership_,
            .grants = *grants_,
            .evaluations = *evaluations_};
  }
  JobView View() const {
    return {.options = options_,
            .membership = *membership_,
            .board = *board_,
            .grants = *grants_,
            .phases = *phases_,
            .evaluations = *evaluations_,
            .orders = *orders_,
            .look = {.phase = phases_->phase(),
                     .workers = membership_->CountAlive("worker")},
            .last_tick = now_};
  }

  absl::Time now_ = absl::FromUnixSeconds(1000000);
  wire::Task worker_;
  CoordinatorOptions options_;
  std::optional<Membership> membership_;
  std::optional<ShardBoard> board_;
  std::optional<StepGrants> grants_;
  std::optional<JobPhases> phases_;
  std::optional<RunEvaluations> evaluations_;
  std::optional<Orders> orders_;
};

}  // namespace parasol::coordinator_testing

#endif  // PARASOL_COORDINATOR_TESTING_JOB_PARTS_H_
