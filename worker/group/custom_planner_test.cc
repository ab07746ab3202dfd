// Sums that a planner plans.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/testing/memory_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/group/group_parameters.h"
#include "worker/group/state/group_state.h"
#include "worker/group/testing/assignments.h"
#include "worker/group/testing/group_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// Leaves all sums as they are.
class IdlePlanner : public AllReducePlanner {
 public:
  std::string name() const override { return "idle"; }
  CollectivePlan AllReduce(const Reduction&, int) const override { return {}; }
};

TEST(CustomPlannerTest, APlannerWhoseSumsAreWrongEndsTheWorker) {
  const std::unique_ptr<GroupState> state = group_testing::MakeState();
  group_testing::Initialize(*state);
  MemoryNetwork network;
  const auto endpoint = network.MakeEndpoint("h:0");
  MetricsRegistry metrics;
  GroupParameters::Options options;
  options.task.set_role("worker");
  options.task.set_incarnation(100);
  options.replicas = 3;
  options.planner = std::make_shared<IdlePlanner>();
  GroupParameters parameters(options, *state, *endpoint, Clock::Real(),
                             metrics);
  group_testing::Assignments assignments;
  assignments.Assign({{0, {0, 1, 2}}});
  parameters.Hear(assignments.Claim(0));
  while (state->steps().ended().ok()) {
    state->steps().Await(1, absl::Milliseconds(1));
  }
  EXPECT_THAT(state->steps().ended(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all-reduce idle: with 1 ranks and 1 "
                                 "elements: element 0 of rank 0 is")));
  parameters.Stop();
}

}  // namespace
}  // namespace parasol
