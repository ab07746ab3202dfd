// Plans of all ranks, carried out in orders drawn from seeds.

#include "cluster/collective/plan/plan.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/collective/plan/copy_plans.h"
#include "cluster/collective/plan/plan_rehearsal.h"
#include "cluster/collective/plan/plan_run.h"
#include "cluster/collective/plan/reduction_plans.h"
#include "cluster/collective/plan/slice.h"
#include "cluster/collective/testing/contributions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;

std::shared_ptr<const CollectivePlan> Shared(CollectivePlan plan) {
  return std::make_shared<const CollectivePlan>(std::move(plan));
}

std::byte* BytesOf(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// One rank's memory in a reduction.
struct RankMemory {
  RankMemory(const Layout& layout, int rank, size_t count) {
    for (const int replica : layout[rank]) {
      contributions.push_back(ContributionOf(replica, 0, count));
    }
  }
  // Returns the plan's buffers; the sums have a contribution's if `in_place` is
  // its index.
  std::vector<std::byte*> Buffers(const CollectivePlan& plan, size_t sums,
                                  size_t in_place) {
    std::vector<std::byte*> buffers;
    for (auto& each : contributions) buffers.push_back(BytesOf(each));
    scratch.resize(plan.scratch_bytes / sizeof(float));
    std::vector<float>* target = &sum;
    if (in_place < contributions.size()) target = &contributions[in_place];
    if (target == &sum) sum.assign(sums, -1);
    buffers.push_back(BytesOf(*target));
    buffers.push_back(BytesOf(scratch));
    result = absl::MakeSpan(*target).first(sums);
    return buffers;
  }

  std::vector<std::vector<float>> contributions;
  std::vector<float> sum;
  std::vector<float> scratch;
  absl::Span<const float> result;
};

constexpr size_t kNotInPlace = 1000;

// Carries an all-reduce out and expects the serial sum at all ranks. Returns
// what each rank sends and receives.
std::vector<size_t> ExpectSerialSum(const Reduction& reduction,
                                    ReductionAlgorithm algorithm, int seed,
                                    size_t in_place) {
  const Layout& layout = reduction.layout;
  PlanRehearsal network(seed);
  std::vector<std::unique_ptr<RankMemory>> memory;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    memory.push_back(
        std::make_unique<RankMemory>(layout, rank, reduction.count));
    CollectivePlan plan = AllReducePlan(reduction, algorithm, rank);
    const auto buffers = memory[rank]->Buffers(plan, reduction.count, in_place);
    network.AddRank(Shared(std::move(plan)), buffers);
  }
  EXPECT_OK(network.CarryOut());
  const std::vector<float> want = SerialSum(layout, 0, reduction.count);
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    EXPECT_TRUE(HasBits(memory[rank]->result, want)) << "rank " << rank;
  }
  return network.traffic();
}

// Chunks of 1 KiB: 256 elements.
constexpr size_t kChunk = 1024;
const size_t kCounts[] = {0,   1,   2,   3,    15,   16,  17,
                          255, 256, 257, 1023, 1025, 4111};

class AllReducePlanTest : public testing::TestWithParam<ReductionAlgorithm> {};

TEST_P(AllReducePlanTest, EveryLayoutSizeAndOrderGivesTheSerialSum) {
  int seed = 0;
  for (const Layout& layout : TestLayouts(8)) {
    for (const size_t count : kCounts) {
      for (const size_t in_place : {kNotInPlace, size_t{0}, size_t{1}}) {
        SCOPED_TRACE(absl::StrCat("seed ", ++seed, ", ", layout.size(),
                                  " ranks, ", count, " elements"));
        ExpectSerialSum({layout, count, kChunk}, GetParam(), seed, in_place);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AllReducePlanTest,
                         testing::Values(ReductionAlgorithm::kOneRound,
                                         ReductionAlgorithm::kOwnerSlices,
                                         ReductionAlgorithm::kChain,
                                         ReductionAlgorithm::kMachines));

// Returns the machines of ranks of which so many neighbours share one.
std::vector<int> Neighbours(size_t ranks, size_t of_a_machine) {
  std::vector<int> machines;
  for (size_t rank = 0; rank < ranks; ++rank) {
    machines.push_back(static_cast<int>(rank / of_a_machine));
  }
  return machines;
}

TEST(MachinePlanTest, EveryPlacementOnMachinesGivesTheSerialSum) {
  int seed = 0;
  for (const Layout& layout : TestLayouts(8)) {
    std::vector<std::vector<int>> placements;
    for (const size_t together : {2, 3, 8}) {
      placements.push_back(Neighbours(layout.size(), together));
    }
    std::vector<int>& dealt = placements.emplace_back();
    for (size_t rank = 0; rank < layout.size(); ++rank) {
      dealt.push_back(7 - static_cast<int>(rank % 2));
    }
    for (const std::vector<int>& machines : placements) {
      for (const size_t count : kCounts) {
        for (const size_t in_place : {kNotInPlace, size_t{0}, size_t{1}}) {
          SCOPED_TRACE(absl::StrCat("seed ", ++seed, ", ", layout.size(),
                                    " ranks, ", count, " elements"));
          ExpectSerialSum({layout, count, kChunk, machines},
                          ReductionAlgorithm::kMachines, seed, in_place);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// Returns the bytes that the ranks of each machine send to others.
std::map<int, size_t> SentByMachines(const Reduction& reduction,
                                     ReductionAlgorithm algorithm) {
  std::map<int, size_t> sent;
  for (size_t rank = 0; rank < reduction.layout.size(); ++rank) {
    const CollectivePlan plan = AllReducePlan(reduction, algorithm, rank);
    for (const CollectiveStep& step : plan.steps()) {
      if (step.kind != CollectiveStep::Kind::kSend) continue;
      const int machine = reduction.machines[rank];
      if (machine == reduction.machines[step.peer]) continue;
      sent[machine] += step.region.bytes;
    }
  }
  return sent;
}

// However many ranks they have: of owner slices each rank would send as much.
TEST(MachinePlanTest, AMachineSendsThePackAtMostTwice) {
  constexpr size_t kCount = 1 << 20;
  constexpr size_t kBytes = kCount * sizeof(float);
  for (const size_t of_a_machine : {2, 4}) {
    for (const size_t machines : {2, 3}) {
      Reduction reduction = {.layout = {}, .count = kCount};
      for (size_t rank = 0; rank < of_a_machine * machines; ++rank) {
        reduction.layout.push_back({static_cast<int>(rank)});
      }
      reduction.machines = Neighbours(reduction.layout.size(), of_a_machine);
      ASSERT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kMachines);
      const std::map<int, size_t> sent =
          SentByMachines(reduction, ReductionAlgorithm::kMachines);
      // Those at the ends have one neighbour.
      EXPECT_EQ(sent.at(0), kBytes);
      EXPECT_EQ(sent.at(static_cast<int>(machines) - 1), kBytes);
      EXPECT_EQ(sent.at(1), machines == 2 ? kBytes : 2 * kBytes);
      EXPECT_GE(
          SentByMachines(reduction, ReductionAlgorithm::kOwnerSlices).at(1),
          2 * kBytes);
    }
  }
}

TEST(MachinePlanTest, SmallPacksBetweenMachinesTravelInOneRound) {
  EXPECT_EQ(
      ChooseReduction({{{0}, {1}, {2}, {3}}, 1000, kChunk, Neighbours(4, 2)}),
      ReductionAlgorithm::kOneRound);
}

// A machine of one rank each is a rank.
TEST(MachinePlanTest, RanksOnMachinesOfTheirOwnChooseAsEver) {
  EXPECT_EQ(
      ChooseReduction({{{0}, {1}, {2}}, 4 << 20, kChunk, Neighbours(3, 1)}),
      ReductionAlgorithm::kOwnerSlices);
}

TEST(ReductionPlansTest, LargePacksTravelTwiceAtMost) {
  constexpr size_t kCount = 1 << 16;
  constexpr size_t kBytes = kCount * sizeof(float);
  for (size_t ranks = 3; ranks <= 8; ++ranks) {
    Layout one(ranks), four(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      one[rank] = {static_cast<int>(rank)};
      for (size_t i = 0; i < 4; ++i) four[rank].push_back(4 * rank + i);
    }
    const Reduction of_one = {one, kCount, kChunk};
    ASSERT_EQ(ChooseReduction(of_one), ReductionAlgorithm::kOwnerSlices);
    // As a ring has it: 2 S (P - 1) / P each way.
    EXPECT_THAT(
        ExpectSerialSum(of_one, ChooseReduction(of_one), 1, kNotInPlace),
        Each(Le(4 * kBytes * (ranks - 1) / ranks + ranks * sizeof(float) * 4)));
    const Reduction of_four = {four, kCount, kChunk};
    ASSERT_EQ(ChooseReduction(of_four), ReductionAlgorithm::kChain);
    EXPECT_THAT(
        ExpectSerialSum(of_four, ChooseReduction(of_four), 1, kNotInPlace),
        Each(Le(4 * kBytes)));
  }
}

TEST(ReductionPlansTest, TwoRanksSendThePackOnce) {
  constexpr size_t kCount = 1 << 16;
  const Reduction reduction = {{{0}, {1}}, kCount, kChunk};
  ASSERT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kOneRound);
  EXPECT_THAT(
      ExpectSerialSum(reduction, ChooseReduction(reduction), 1, kNotInPlace),
      Each(2 * kCount * sizeof(float)));
}

// Each adds half of it, in memory that all chunks share; nobody sends more.
TEST(ReductionPlansTest, TwoRanksOfOneMachineShareTheAdditionOfLargePacks) {
  constexpr size_t kCount = 4 << 20;
  Reduction reduction = {{{0}, {1}}, kCount, kChunk, {0, 0}};
  ASSERT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kOwnerSlices);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(AllReducePlan(reduction, ReductionAlgorithm::kOwnerSlices, rank)
                  .scratch_bytes,
              kChunk);
  }
  EXPECT_THAT(
      ExpectSerialSum(reduction, ChooseReduction(reduction), 1, kNotInPlace),
      Each(2 * kCount * sizeof(float)));
  reduction.count = 1 << 16;
  EXPECT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kOneRound);
  // Contributions of several replicas make a chain shorter.
  reduction = {{{0, 1}, {2, 3}}, kCount, kChunk, {0, 0}};
  EXPECT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kChain);
}

TEST(ReductionPlansTest, LargePacksOfOneMachineTravelAlongAChain) {
  Reduction reduction = {{{0}, {1}, {2}}, 4 << 20, kChunk};
  EXPECT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kOwnerSlices);
  reduction.machines = {0, 0, 0};
  EXPECT_EQ(ChooseReduction(reduction), ReductionAlgorithm::kChain);
}

TEST(ReductionPlansTest, SmallPacksTravelInOneRound) {
  EXPECT_EQ(ChooseReduction({{{0}, {1}, {2}}, 100, kChunk}),
            ReductionAlgorithm::kOneRound);
}

TEST(ReductionPlansTest, ReduceScatterGivesTheSliceOfTheSerialSum) {
  int seed = 0;
  for (const Layout& layout : TestLayouts(6)) {
    for (const size_t count : kCounts) {
      const Reduction reduction = {layout, count, kChunk};
      PlanRehearsal network(++seed);
      std::vector<std::unique_ptr<RankMemory>> memory;
      for (size_t rank = 0; rank < layout.size(); ++rank) {
        memory.push_back(std::make_unique<RankMemory>(layout, rank, count));
        CollectivePlan plan = ReduceScatterPlan(reduction, rank);
        const auto buffers = memory[rank]->Buffers(
            plan, SliceOf(count, layout.size(), rank).count, kNotInPlace);
        network.AddRank(Shared(std::move(plan)), buffers);
      }
      EXPECT_OK(network.CarryOut());
      const std::vector<float> sum = SerialSum(layout, 0, count);
      for (size_t rank = 0; rank < layout.size(); ++rank) {
        const ElementRange slice = SliceOf(count, layout.size(), rank);
        EXPECT_TRUE(
            HasBits(memory[rank]->result,
                    absl::MakeSpan(sum).subspan(slice.first, slice.count)))
            << "seed " << seed;
      }
    }
  }
}

TEST(CopyPlansTest, AllGatherBringsEveryRanksBytes) {
  for (size_t ranks = 1; ranks <= 6; ++ranks) {
    std::vector<size_t> sizes;
    for (size_t rank = 0; rank < ranks; ++rank) {
      sizes.push_back(rank % 3 * 1500);
    }
    PlanRehearsal network(static_cast<int>(ranks));
    std::vector<std::vector<std::string>> bytes(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::byte*> buffers;
      for (size_t owner = 0; owner < ranks; ++owner) {
        bytes[rank].push_back(
            std::string(sizes[owner], owner == rank ? 'a' + rank : '-'));
      }
      for (std::string& each : bytes[rank]) {
        buffers.push_back(reinterpret_cast<std::byte*>(each.data()));
      }
      network.AddRank(Shared(AllGatherPlan(sizes, rank, kChunk)), buffers);
    }
    EXPECT_OK(network.CarryOut());
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (size_t owner = 0; owner < ranks; ++owner) {
        EXPECT_THAT(bytes[rank][owner], Each('a' + owner));
      }
    }
  }
}

TEST(CopyPlansTest, BroadcastReachesItsReceiversAlone) {
  const std::vector<int> receivers = {4, 0, 3};
  for (const size_t size : {0, 1, 1024, 1025, 10000}) {
    PlanRehearsal network(static_cast<int>(size));
    std::vector<std::string> bytes;
    for (int rank = 0; rank < 6; ++rank) {
      bytes.push_back(std::string(size, rank == 2 ? 'x' : '-'));
    }
    for (int rank = 0; rank < 6; ++rank) {
      network.AddRank(Shared(BroadcastPlan(2, receivers, size, rank, kChunk)),
                      {reinterpret_cast<std::byte*>(bytes[rank].data())});
    }
    EXPECT_OK(network.CarryOut());
    for (const int rank : {0, 2, 3, 4}) EXPECT_THAT(bytes[rank], Each('x'));
    for (const int rank : {1, 5}) EXPECT_THAT(bytes[rank], Each('-'));
  }
}

TEST(PlanRunTest, WhatIsNotDueIsRefused) {
  const Reduction reduction = {{{0}, {1}}, 1000, kChunk};
  RankMemory memory(reduction.layout, 0, reduction.count);
  CollectivePlan plan = AllReducePlan(reduction, ReductionAlgorithm::kChain, 0);
  const auto buffers = memory.Buffers(plan, reduction.count, kNotInPlace);
  PlanRun run(Shared(std::move(plan)), buffers);
  std::vector<PlanRun::Send> sends;
  run.Begin(sends);
  const uint64_t sums = uint64_t{2} << 62;
  EXPECT_OK(run.Target(1, sums, kChunk));
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("piece"));
  EXPECT_THAT(run.Target(1, sums, kChunk + 1), refused);
  EXPECT_THAT(run.Target(1, sums + 77, kChunk), refused);
  EXPECT_THAT(run.Target(0, sums, kChunk), refused);
  run.Received(1, sums, sends);
  EXPECT_THAT(run.Target(1, sums, kChunk), refused);  // a second time
}

}  // namespace
}  // namespace parasol
