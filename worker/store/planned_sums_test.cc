#include "worker/store/planned_sums.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/test_planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rank 0 gets all contributions and adds them from the last one on.
CollectivePlan FromTheLast(const Reduction& reduction, int rank) {
  const size_t bytes = reduction.count * sizeof(float);
  CollectivePlan plan;
  if (rank > 0) {
    plan.Send(0, 0, {0, 0, bytes});
    plan.Receive(0, 1, {1, 0, bytes});
    return plan;
  }
  const int ranks = static_cast<int>(reduction.layout.size());
  std::vector<Region> addends = {{0, 0, bytes}};
  std::vector<int> received;
  for (int other = 1; other < ranks; ++other) {
    addends.push_back({2, plan.scratch_bytes, bytes});
    plan.scratch_bytes += bytes;
    received.push_back(plan.Receive(other, 0, addends.back()));
  }
  std::reverse(addends.begin(), addends.end());
  const int added = plan.Sum({1, 0, bytes}, std::move(addends), received);
  for (int other = 1; other < ranks; ++other) {
    plan.Send(other, 1, {1, 0, bytes}, {added});
  }
  return plan;
}

TEST(PlannedSumsTest, ThePlannersOrderIsThatOfTheSums) {
  ASSERT_OK_AND_ASSIGN(
      const auto sums,
      PlannedSums::Create(std::make_shared<TestPlanner>(FromTheLast), 3));
  const std::vector<float> gradients[] = {{0, 1e8, 1}, {0, -1e8, 2}, {0, 1, 3}};
  const std::vector<absl::Span<const float>> spans(std::begin(gradients),
                                                   std::end(gradients));
  std::vector<float> workspace;
  std::vector<float> sum(2);
  // In ascending order the first one was 1.
  EXPECT_OK(sums->Add(spans, 1, absl::MakeSpan(sum), workspace));
  EXPECT_THAT(sum, ElementsAre(0, 6));
  sum.resize(1);
  EXPECT_OK(sums->Add(spans, 2, absl::MakeSpan(sum), workspace));
  EXPECT_THAT(sum, ElementsAre(6));
}

TEST(PlannedSumsTest, AWrongPlannerIsRefused) {
  const auto lazy = std::make_shared<TestPlanner>(
      [](const Reduction&, int) { return CollectivePlan(); });
  EXPECT_THAT(PlannedSums::Create(lazy, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all-reduce test: with 2 ranks and 1 "
                                 "elements: element 0 of rank 0")));
}

}  // namespace
}  // namespace parasol
