#include "parameters/client/operation_plan.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::HasSubstr;

constexpr OperationPlan::Limits kLimits = {.lanes_per_shard = 2,
                                           .message_bytes = 1 << 20};
constexpr size_t kOperationElements = (256 << 10) / sizeof(float);

void AddPart(wire::Shard& shard, const std::string& variable, int64_t size,
             int64_t first, int64_t elements) {
  wire::PartSpec& part = *shard.add_part();
  part.set_id(shard.part_size() - 1);
  part.set_variable(variable);
  part.add_variable_shape(size);
  part.set_first_element(first);
  part.set_elements(elements);
}

// "big" over two shards, between small ones of one element each.
wire::GetPlacementResponse TwoShards() {
  constexpr int64_t kBig = 2 * 1000 * 1000 + 1;
  wire::GetPlacementResponse placement;
  wire::Shard& s0 = *placement.add_shard();
  wire::Shard& s1 = *placement.add_shard();
  AddPart(s0, "a", 1, 0, 1);
  AddPart(s0, "big", kBig, 0, 1000 * 1000);
  AddPart(s0, "b", 1, 0, 1);
  AddPart(s1, "big", kBig, 1000 * 1000, kBig - 1000 * 1000);
  return placement;
}

TEST(OperationPlanTest, MessagesCoverEveryElementOnceInWholeChunks) {
  ASSERT_OK_AND_ASSIGN(const OperationPlan plan,
                       OperationPlan::Make(TwoShards(), {"big", "b"}, kLimits));
  std::map<std::pair<size_t, size_t>, size_t> covered;  // (item, offset): count
  for (const OperationPlan::Operation& message : plan.Operations({1, 0})) {
    size_t elements = 0;
    for (const OperationPlan::Range& range : message.ranges) {
      EXPECT_EQ(range.first % kChunkElements, 0u);
      covered[{range.item, range.offset}] = range.count;
      elements += range.count;
    }
    EXPECT_LE(elements, kOperationElements);
  }
  ASSERT_EQ((covered[{0, 0}]), 1u);
  size_t end = 0;
  for (const auto& [at, count] : covered) {
    if (at.first != 1) continue;
    EXPECT_EQ(at.second, end);
    end += count;
  }
  EXPECT_EQ(end, plan.elements(0));
}

TEST(OperationPlanTest, AChunkTravelsOnOneStreamWhateverElseTravels) {
  ASSERT_OK_AND_ASSIGN(
      const OperationPlan plan,
      OperationPlan::Make(TwoShards(), {"a", "b", "big"}, kLimits));
  using Chunk = std::pair<uint32_t, uint64_t>;
  std::map<std::pair<size_t, Chunk>, size_t> streams;
  for (const std::vector<size_t>& variables :
       {std::vector<size_t>{2}, {0, 1, 2}, {2, 1, 0}, {1}}) {
    for (const OperationPlan::Operation& message : plan.Operations(variables)) {
      for (const OperationPlan::Range& range : message.ranges) {
        for (uint64_t i = 0; i < range.count; i += kChunkElements) {
          const auto [at, is_new] = streams.try_emplace(
              {message.shard, {range.part, range.first + i}}, message.lane);
          EXPECT_EQ(at->second, message.lane);
        }
      }
    }
  }
  std::set<size_t> used;
  for (const auto& [chunk, stream] : streams) used.insert(stream);
  EXPECT_EQ(used.size(), 2u);
}

TEST(OperationPlanTest, SmallVariablesOfOneShardShareAMessage) {
  wire::GetPlacementResponse placement;
  wire::Shard& shard = *placement.add_shard();
  std::vector<std::string> names;
  std::vector<size_t> all;
  for (int i = 0; i < 100; ++i) {
    names.push_back("v" + std::to_string(i));
    all.push_back(i);
    AddPart(shard, names.back(), 100, 0, 100);
  }
  ASSERT_OK_AND_ASSIGN(const OperationPlan plan,
                       OperationPlan::Make(placement, names, kLimits));
  const auto messages = plan.Operations(all);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].ranges.size(), 100u);
}

TEST(OperationPlanTest, WhatIsNotTrainedTravelsOnTheSameStreamByItself) {
  wire::GetPlacementResponse placement;
  wire::Shard& shard = *placement.add_shard();
  for (const char* name : {"gamma", "moving_mean", "beta", "moving_variance"}) {
    AddPart(shard, name, 10, 0, 10);
  }
  shard.mutable_part(1)->mutable_optimizer()->mutable_sgd();
  shard.mutable_part(3)->mutable_optimizer()->mutable_sgd();
  ASSERT_OK_AND_ASSIGN(
      const OperationPlan plan,
      OperationPlan::Make(placement,
                          {"gamma", "moving_mean", "beta", "moving_variance"},
                          {.lanes_per_shard = 1, .message_bytes = 1 << 20}));
  const auto messages = plan.Operations({0, 1, 2, 3});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_FALSE(messages[0].untrained);
  EXPECT_TRUE(messages[1].untrained);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(messages[i].ranges.size(), 2u);
    EXPECT_EQ(messages[i].ranges[0].item, i);
    EXPECT_EQ(messages[i].ranges[1].item, i + 2);
  }
}

TEST(OperationPlanTest, AVariableOfTwoChunksUsesBothStreams) {
  wire::GetPlacementResponse placement;
  AddPart(*placement.add_shard(), "v", 2 * kChunkElements, 0,
          2 * kChunkElements);
  ASSERT_OK_AND_ASSIGN(const OperationPlan plan,
                       OperationPlan::Make(placement, {"v"}, kLimits));
  const auto messages = plan.Operations({0});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].lane, messages[1].lane);
}

TEST(OperationPlanTest, WhatThePlacementLacksIsNamed) {
  EXPECT_THAT(OperationPlan::Make(TwoShards(), {"c"}, kLimits),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable c: is on no shard")));
  struct Case {
    int64_t first, elements;
    std::string want;
  };
  for (const Case& c : {Case{5, 5, "elements [4, 5) are on no shard"},
                        Case{3, 7, "elements [3, 4) are on no shard or on two"},
                        Case{4, 5, "elements [9, 10) are on no shard"},
                        Case{4, 7, "a part of 7 elements at 4 of 10"},
                        Case{4, 0, "a part of 0 elements at 4 of 10"}}) {
    SCOPED_TRACE(c.want);
    wire::GetPlacementResponse placement;
    AddPart(*placement.add_shard(), "v", 10, 0, 4);
    AddPart(*placement.add_shard(), "v", 10, c.first, c.elements);
    EXPECT_THAT(
        OperationPlan::Make(placement, {"v"}, kLimits),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(OperationPlanTest, ShardingIsTheSameOnlyWithTheSameCuts) {
  ASSERT_OK_AND_ASSIGN(const OperationPlan plan,
                       OperationPlan::Make(TwoShards(), {"big"}, kLimits));
  ASSERT_OK_AND_ASSIGN(const OperationPlan again,
                       OperationPlan::Make(TwoShards(), {"big"}, kLimits));
  EXPECT_TRUE(plan.SameSharding(again));
  wire::GetPlacementResponse swapped = TwoShards();
  swapped.mutable_shard()->SwapElements(0, 1);
  ASSERT_OK_AND_ASSIGN(const OperationPlan other,
                       OperationPlan::Make(swapped, {"big"}, kLimits));
  EXPECT_FALSE(plan.SameSharding(other));
}

}  // namespace
}  // namespace parasol
