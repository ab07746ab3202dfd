#include "cluster/collective/plan/combined_plan.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/contributions.h"
#include "cluster/collective/testing/test_planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TestPlanner PlannerOf(ReductionAlgorithm algorithm) {
  return TestPlanner([algorithm](const Reduction& reduction, int rank) {
    return AllReducePlan(reduction, algorithm, rank);
  });
}

// Returns the sums of the contributions of ContributionOf().
std::vector<float> SumsOf(const CombinedPlan& plan,
                          const Reduction& reduction) {
  std::vector<std::vector<float>> values;
  for (const std::vector<int>& replicas : reduction.layout) {
    for (const int replica : replicas) {
      values.push_back(ContributionOf(replica, 0, reduction.count));
    }
  }
  std::vector<const float*> contributions;
  for (const std::vector<float>& each : values) {
    contributions.push_back(each.data());
  }
  std::vector<float> sums(reduction.count, -1);
  std::vector<float> workspace(plan.workspace_elements());
  plan.Run(contributions, absl::MakeSpan(sums), absl::MakeSpan(workspace));
  return sums;
}

class CombinedPlanTest : public testing::TestWithParam<ReductionAlgorithm> {};

TEST_P(CombinedPlanTest, EveryLayoutAndSizeGivesTheSerialSum) {
  for (const Layout& layout : TestLayouts(8)) {
    for (const size_t count : {0, 1, 17, 1023}) {
      SCOPED_TRACE(absl::StrCat(layout.size(), " ranks, ", count, " elements"));
      const Reduction reduction = {
          .layout = layout, .count = count, .chunk_bytes = 256};
      ASSERT_OK_AND_ASSIGN(
          const CombinedPlan plan,
          CombinedPlan::Make(PlannerOf(GetParam()), reduction));
      EXPECT_TRUE(
          HasBits(SumsOf(plan, reduction), SerialSum(layout, 0, count)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CombinedPlanTest,
                         testing::Values(ReductionAlgorithm::kOneRound,
                                         ReductionAlgorithm::kOwnerSlices,
                                         ReductionAlgorithm::kChain));

// Two ranks with a replica each; rank 1 sends its contribution.
CollectivePlan HalfExchange(const Reduction& reduction, int rank) {
  const size_t bytes = reduction.count * sizeof(float);
  CollectivePlan plan;
  if (rank == 1) {
    plan.Send(0, 0, {0, 0, bytes});
    return plan;
  }
  plan.scratch_bytes = bytes;
  const int received = plan.Receive(1, 0, {2, 0, bytes});
  plan.Sum({1, 0, bytes}, {{0, 0, bytes}, {2, 0, bytes}}, {received});
  return plan;
}

// Returns the fault of two ranks whose plans `change` makes.
absl::Status FaultOf(TestPlanner::Plan change) {
  return CombinedPlan::Make(TestPlanner(std::move(change)),
                            {.layout = {{0}, {1}}, .count = 5})
      .status();
}

auto Faulty(const std::string& text) {
  return StatusIs(
      absl::StatusCode::kInvalidArgument,
      HasSubstr(absl::StrCat("all-reduce test of 5 elements: ", text)));
}

// Other ranks' sums are nobody's.
TEST(CombinedPlanFaultTest, Rank0sSumsAreEnough) {
  EXPECT_OK(FaultOf(HalfExchange));
}

TEST(CombinedPlanFaultTest, AMessageThatNobodyWaitsForIsFound) {
  EXPECT_THAT(FaultOf([](const Reduction& reduction, int rank) {
                CollectivePlan plan = HalfExchange(reduction, rank);
                if (rank == 1) plan.Send(0, 7, {0, 0, 8});
                return plan;
              }),
              Faulty("rank 1 sends piece 7 of 8 bytes to rank 0, which waits "
                     "for no such piece"));
}

TEST(CombinedPlanFaultTest, AMessageThatNobodySendsIsFound) {
  EXPECT_THAT(FaultOf([](const Reduction& reduction, int rank) {
                CollectivePlan plan = HalfExchange(reduction, rank);
                if (rank == 1) plan.Receive(0, 7, {1, 0, 8});
                return plan;
              }),
              Faulty("rank 1 waits for piece 7 of rank 0, which does not send "
                     "it"));
}

TEST(CombinedPlanFaultTest, StepsThatWaitForEachOtherAreFound) {
  EXPECT_THAT(FaultOf([](const Reduction&, int rank) {
                CollectivePlan plan;
                const int received = plan.Receive(1 - rank, 0, {1, 0, 20});
                plan.Send(1 - rank, 0, {1, 0, 20}, {received});
                return plan;
              }),
              Faulty("steps wait for each other"));
}

TEST(CombinedPlanFaultTest, AWrongSumIsFound) {
  EXPECT_THAT(FaultOf([](const Reduction&, int) {
                CollectivePlan plan;
                plan.Sum({1, 0, 20}, {{0, 0, 20}});
                return plan;
              }),
              Faulty("element 0 is 1, must be 3828"));
}

TEST(CombinedPlanFaultTest, AStepOutsideOfItsMemoryIsFound) {
  EXPECT_THAT(FaultOf([](const Reduction&, int) {
                CollectivePlan plan;
                plan.Sum({1, 0, 24}, {{0, 0, 24}});
                return plan;
              }),
              Faulty("step 0 of rank 0 has bytes 0 to 24 of buffer 1"));
}

}  // namespace
}  // namespace parasol
