#include "cluster/collective/plan/all_reduce_planner.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/contributions.h"
#include "cluster/collective/testing/test_planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two ranks with a replica each: buffer 0 the contribution, 1 the sums, 2
// scratch. Each sends its contribution, adds both, and lets a test change that.
struct Exchange {
  Exchange(const Reduction& reduction, int rank)
      : bytes(reduction.count * sizeof(float)), other(1 - rank) {
    plan.scratch_bytes = bytes;
  }
  int Send() { return plan.Send(other, 0, {0, 0, bytes}); }
  int Receive() { return plan.Receive(other, 0, {2, 0, bytes}); }
  // Adds what comes, whatever of this rank's is still being sent.
  void AddReceived() {
    const int received = Receive();
    plan.Sum({1, 0, bytes}, {{0, 0, bytes}, {2, 0, bytes}}, {received});
  }

  const size_t bytes;
  const int other;
  CollectivePlan plan;
};

absl::Status Check(TestPlanner::Plan plan) {
  return CheckPlanner(TestPlanner(std::move(plan)), {{0}, {1}});
}

auto Refused(const std::string& text) {
  return StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr("all-reduce test: with 2 ranks and "), HasSubstr(text)));
}

TEST(AllReducePlannerTest, TheOwnAlgorithmsAreRight) {
  for (const auto algorithm :
       {ReductionAlgorithm::kOneRound, ReductionAlgorithm::kOwnerSlices,
        ReductionAlgorithm::kChain}) {
    const TestPlanner planner([&](const Reduction& reduction, int rank) {
      return AllReducePlan(reduction, algorithm, rank);
    });
    for (const Layout& layout : TestLayouts(8)) {
      EXPECT_OK(CheckPlanner(planner, layout));
    }
  }
  EXPECT_OK(CheckPlanner(*OwnerSlicesPlanner(), {{0}, {1}, {2}}));
}

TEST(AllReducePlannerTest, ARightExchangeIsTaken) {
  EXPECT_OK(Check([](const Reduction& reduction, int rank) {
    Exchange exchange(reduction, rank);
    const int sent = exchange.Send();
    const int received = exchange.Receive();
    const Region own = {0, 0, exchange.bytes};
    const Region theirs = {2, 0, exchange.bytes};
    exchange.plan.Sum({1, 0, exchange.bytes},
                      rank == 0 ? std::vector<Region>{own, theirs}
                                : std::vector<Region>{theirs, own},
                      {sent, received});
    return std::move(exchange.plan);
  }));
}

TEST(AllReducePlannerTest, AMissingContributionIsFound) {
  EXPECT_THAT(
      Check([](const Reduction& reduction, int rank) {
        Exchange exchange(reduction, rank);
        exchange.plan.Sum({1, 0, exchange.bytes}, {{0, 0, exchange.bytes}});
        return std::move(exchange.plan);
      }),
      Refused("a contribution is missing or there twice"));
}

TEST(AllReducePlannerTest, SumsThatAreNotWrittenAreFound) {
  EXPECT_THAT(Check([](const Reduction&, int) { return CollectivePlan(); }),
              Refused("1 elements: element 0 of rank 0"));
}

TEST(AllReducePlannerTest, SumsOfOtherOrdersAtOtherRanksAreFound) {
  // Each rank adds its own contribution first: ((own + own') + theirs).
  const TestPlanner planner([](const Reduction& reduction, int rank) {
    Exchange exchange(reduction, rank);
    const int own = static_cast<int>(reduction.layout[rank].size());
    const int theirs = 3 - own;
    CollectivePlan& plan = exchange.plan;
    plan.scratch_bytes = theirs * exchange.bytes;
    std::vector<Region> addends;
    std::vector<int> before;
    for (int i = 0; i < own; ++i) {
      addends.push_back({i, 0, exchange.bytes});
      before.push_back(plan.Send(exchange.other, i, addends.back()));
    }
    for (int i = 0; i < theirs; ++i) {
      addends.push_back({own + 1, i * exchange.bytes, exchange.bytes});
      before.push_back(plan.Receive(exchange.other, i, addends.back()));
    }
    plan.Sum({own, 0, exchange.bytes}, addends, before);
    return std::move(plan);
  });
  EXPECT_THAT(CheckPlanner(planner, {{0, 1}, {2}}),
              Refused("has other bits at rank 1 than at rank 0"));
}

TEST(AllReducePlannerTest, AMessageThatIsNeverSentIsFound) {
  EXPECT_THAT(Check([](const Reduction& reduction, int rank) {
                Exchange exchange(reduction, rank);
                if (rank == 1) exchange.Send();
                exchange.AddReceived();
                return std::move(exchange.plan);
              }),
              Refused("rank 1 waits for piece 0 of rank 0"));
}

TEST(AllReducePlannerTest, AMessageThatNobodyWaitsForIsFound) {
  EXPECT_THAT(Check([](const Reduction& reduction, int rank) {
                Exchange exchange(reduction, rank);
                exchange.Send();
                return std::move(exchange.plan);
              }),
              Refused("piece 0 of 4 bytes is not due"));
}

// The message is read when it arrives, and by then the sums lie there.
TEST(AllReducePlannerTest, SumsThatOverwriteWhatIsSentAreFound) {
  EXPECT_THAT(Check([](const Reduction& reduction, int rank) {
                Exchange exchange(reduction, rank);
                exchange.Send();
                exchange.AddReceived();
                return std::move(exchange.plan);
              }),
              Refused("if the sums take a contribution's place"));
}

TEST(AllReducePlannerTest, StepsOutsideOfTheirMemoryAreFound) {
  const auto with_region = [](const Region& region) {
    return Check([region](const Reduction& reduction, int rank) {
      Exchange exchange(reduction, rank);
      exchange.plan.Receive(exchange.other, 7, region);
      return std::move(exchange.plan);
    });
  };
  EXPECT_THAT(with_region({1, 4, SIZE_MAX - 3}), Refused("of buffer 1"));
  EXPECT_THAT(with_region({1, 0, 1 << 20}),
              Refused("bytes 0 to 1048576 of buffer 1, which has 0"));
  EXPECT_THAT(with_region({2, 1 << 20, 4}), Refused("of buffer 2"));
  EXPECT_THAT(with_region({3, 0, 4}), Refused("buffer 3 of 3"));
  EXPECT_THAT(with_region({-1, 0, 4}), Refused("buffer -1 of 3"));
}

TEST(AllReducePlannerTest, AWriteToAContributionIsFound) {
  EXPECT_THAT(
      Check([](const Reduction& reduction, int rank) {
        Exchange exchange(reduction, rank);
        exchange.plan.Receive(exchange.other, 0, {0, 0, exchange.bytes});
        return std::move(exchange.plan);
      }),
      Refused("a write to contribution 0"));
}

TEST(AllReducePlannerTest, AMessageToNobodyIsFound) {
  EXPECT_THAT(Check([](const Reduction& reduction, int rank) {
                Exchange exchange(reduction, rank);
                exchange.plan.Send(2, 0, {0, 0, exchange.bytes});
                return std::move(exchange.plan);
              }),
              Refused("a message between rank 0 and rank 2 of 2"));
}

}  // namespace
}  // namespace parasol
