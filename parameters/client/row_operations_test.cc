#include "parameters/client/row_operations.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/placement/row_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::HasSubstr;

using Operations = std::vector<EncodedOperation>;

constexpr size_t kWidth = 3;

wire::GetPlacementResponse Placement(int shards) {
  wire::GetPlacementResponse placement;
  for (int i = 0; i < shards; ++i) {
    wire::TableSpec& table = *placement.add_shard()->add_table();
    table.set_id(5);
    table.set_name("users");
    table.set_width(kWidth);
  }
  return placement;
}

RowOperations Make(int shards, const RowOperations::Limits& limits = {
                                   .message_bytes = 1 << 20}) {
  auto operations = RowOperations::Make(Placement(shards), {"users"}, limits);
  EXPECT_OK(operations);
  return *std::move(operations);
}

std::shared_ptr<const Call> PushCall() {
  const auto call = std::make_shared<Call>();
  call->is_push = true;
  return call;
}

constexpr auto kOfPushes = RowOperations::PullLanes::kOfPushes;
constexpr auto kAll = RowOperations::PullLanes::kAll;

std::shared_ptr<const Call> PullCall() { return std::make_shared<Call>(); }

std::vector<uint64_t> IdsOf(const EncodedOperation& operation) {
  const ShardOperation::Rows& rows = operation.asked.rows();
  std::vector<uint64_t> ids(rows.count);
  const void* const from = operation.borrows_memory()
                               ? static_cast<const void*>(rows.ids)
                               : operation.payload.get();
  std::memcpy(ids.data(), from, ids.size() * sizeof(uint64_t));
  return ids;
}

TEST(RowPartitionTest, EachPositionIsWithItsIdsShardInOrder) {
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 1000; ++i) ids.push_back(i * i % 100);
  for (const size_t shards : {1, 2, 7}) {
    const RowPartition partition(ids, shards);
    size_t positions = 0;
    for (size_t shard = 0; shard < shards; ++shard) {
      const absl::Span<const uint32_t> some = partition.OfShard(shard);
      positions += some.size();
      for (size_t i = 0; i < some.size(); ++i) {
        EXPECT_EQ(ShardOfRow(ids[some[i]], shards), shard);
        EXPECT_TRUE(i == 0 || some[i - 1] < some[i]);
      }
    }
    EXPECT_EQ(positions, ids.size());
  }
}

TEST(RowRequestsTest, APullAsksOnlyShardsThatHaveARow) {
  constexpr uint64_t kId = 77;
  const std::vector<uint64_t> ids = {kId, kId};
  const RowOperations rows = Make(3);
  std::vector<float> values(2 * kWidth);
  Operations operations;
  rows.AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kOfPushes,
                operations);
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].asked.kind(), ShardOperation::Kind::kRowPull);
  EXPECT_EQ(operations[0].asked.shard, ShardOfRow(kId, 3));
  EXPECT_EQ(operations[0].asked.rows().table, 5u);
  EXPECT_EQ(IdsOf(operations[0]), ids);
}

TEST(RowRequestsTest, ALongPullIsCut) {
  const RowOperations rows =
      Make(1, {.message_bytes = 4 * kWidth * sizeof(float)});
  const std::vector<uint64_t> ids = {9, 8, 7, 6, 5, 4};
  std::vector<float> values(ids.size() * kWidth);
  Operations operations;
  rows.AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kOfPushes,
                operations);
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(IdsOf(operations[0]), (std::vector<uint64_t>{9, 8, 7, 6}));
  EXPECT_EQ(IdsOf(operations[1]), (std::vector<uint64_t>{5, 4}));
  EXPECT_EQ(operations[1].asked.rows().target, &values[4 * kWidth]);
}

TEST(RowRequestsTest, APullIsSpreadOverTheLanesIfItNeedNotFollowAPush) {
  const RowOperations rows =
      Make(2, {.lanes_per_shard = 3, .message_bytes = 1 << 20});
  constexpr size_t kMany = 100000;
  std::vector<uint64_t> ids(kMany);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> values(kMany * kWidth);
  Operations operations;
  rows.AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kAll, operations);
  std::map<size_t, std::set<size_t>> lanes;
  std::vector<uint64_t> asked;
  for (const EncodedOperation& operation : operations) {
    lanes[operation.asked.shard].insert(operation.asked.lane);
    for (const uint64_t id : IdsOf(operation)) {
      EXPECT_EQ(ShardOfRow(id, 2), operation.asked.shard);
      asked.push_back(id);
    }
  }
  EXPECT_EQ(lanes[0], (std::set<size_t>{0, 1, 2}));
  EXPECT_EQ(lanes[1], (std::set<size_t>{0, 1, 2}));
  EXPECT_EQ(operations.size(), 6u);
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(asked, ids) << "each once";

  operations.clear();
  rows.AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kOfPushes,
                operations);
  for (const EncodedOperation& operation : operations) {
    EXPECT_EQ(operation.asked.lane, 0u);
  }
  operations.clear();
  rows.AddPulls(PullCall(), 0, absl::MakeConstSpan(ids).first(100),
                absl::MakeSpan(values).first(100 * kWidth), kAll, operations);
  EXPECT_EQ(operations.size(), 2u) << "a few rows are not worth a message";
}

TEST(RowRequestsTest, APushGoesToEveryShardWithItsRows) {
  const RowOperations rows = Make(3);
  const std::vector<uint64_t> ids = {40};
  const std::vector<float> gradient = {1, 2, 3};
  Operations operations;
  ASSERT_OK(rows.AddPushes(PushCall(), {0, ids, gradient}, /*values=*/{},
                           operations));
  ASSERT_EQ(operations.size(), 3u);
  for (size_t shard = 0; shard < 3; ++shard) {
    const EncodedOperation& operation = operations[shard];
    EXPECT_EQ(operation.asked.shard, shard);
    EXPECT_EQ(operation.payloads, 2u);
    if (shard != ShardOfRow(40, 3)) {
      EXPECT_EQ(operation.asked.rows().count, 0u);
      continue;
    }
    EXPECT_EQ(IdsOf(operation), ids);
    EXPECT_EQ(operation.asked.rows().gradients, gradient.data());
  }
}

TEST(RowRequestsTest, RowsThatLieTogetherAreSentFromWhereTheyAre) {
  const std::vector<uint64_t> ids = {3, 1, 2};
  const std::vector<float> gradients(ids.size() * kWidth);
  std::vector<float> values(gradients.size());
  Operations operations;
  const RowOperations rows = Make(1);
  ASSERT_OK(rows.AddPushes(PushCall(), {0, ids, gradients}, /*values=*/{},
                           operations));
  rows.AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kOfPushes,
                operations);
  ASSERT_EQ(operations.size(), 2u);
  for (const EncodedOperation& operation : operations) {
    EXPECT_TRUE(operation.borrows_memory());
    EXPECT_EQ(operation.asked.rows().ids, ids.data());
    EXPECT_EQ(operation.asked.rows().count, ids.size());
  }
  EXPECT_EQ(operations[0].asked.rows().gradients, gradients.data());
  EXPECT_EQ(operations[1].asked.rows().target, values.data());
}

TEST(RowRequestsTest, RowsWithOthersBetweenThemAreSentFromACopy) {
  std::vector<uint64_t> ids = {0, 0, 0};
  while (ShardOfRow(ids[1], 2) == ShardOfRow(ids[0], 2)) ++ids[1];
  const std::vector<float> gradients = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> values(gradients.size());
  const size_t shard = ShardOfRow(ids[0], 2);
  Operations pushes;
  ASSERT_OK(Make(2).AddPushes(PushCall(), {0, ids, gradients}, /*values=*/{},
                              pushes));
  EXPECT_EQ(IdsOf(pushes[shard]), (std::vector<uint64_t>{0, 0}));
  std::vector<float> sent(2 * kWidth);
  std::memcpy(sent.data(), pushes[shard].payload.get() + 2 * sizeof(uint64_t),
              sent.size() * sizeof(float));
  EXPECT_EQ(sent, (std::vector<float>{0, 1, 2, 6, 7, 8}));
  Operations pulls;
  Make(2).AddPulls(PullCall(), 0, ids, absl::MakeSpan(values), kOfPushes,
                   pulls);
  EXPECT_FALSE(pulls[shard].borrows_memory());
  EXPECT_EQ(pulls[shard].asked.rows().positions, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(pulls[shard].asked.rows().target, values.data());
}

TEST(RowRequestsTest, CountsGoWithTheirRows) {
  std::vector<uint64_t> ids = {0, 0, 0};
  while (ShardOfRow(ids[1], 2) == ShardOfRow(ids[0], 2)) ++ids[1];
  const std::vector<float> gradients(ids.size() * kWidth);
  const std::vector<uint32_t> counts = {5, 6, 7};
  const size_t shard = ShardOfRow(ids[0], 2);
  Operations pushes;
  ASSERT_OK(Make(2).AddPushes(PushCall(), {0, ids, gradients, counts},
                              /*values=*/{}, pushes));
  EXPECT_EQ(pushes[shard].payloads, 3u);
  EXPECT_EQ(pushes[shard].payload_bytes,
            2 * (sizeof(uint64_t) + kWidth * sizeof(float) + sizeof(uint32_t)));
  std::vector<uint32_t> sent(2);
  std::memcpy(sent.data(),
              pushes[shard].payload.get() + 2 * sizeof(uint64_t) +
                  2 * kWidth * sizeof(float),
              sizeof(uint32_t) * sent.size());
  EXPECT_EQ(sent, (std::vector<uint32_t>{5, 7}));
  EXPECT_TRUE(pushes[1 - shard].asked.rows().has_counts);
  EXPECT_EQ(pushes[1 - shard].asked.rows().counts, &counts[1]);
}

TEST(RowRequestsTest, HalvesAreSentFromACopy) {
  const RowOperations rows =
      Make(1, {.message_bytes = 1 << 20, .encoding = job::FLOAT16});
  Operations operations;
  const uint64_t id = 7;
  const std::vector<float> gradient(kWidth);
  ASSERT_OK(rows.AddPushes(
      PushCall(), {0, absl::MakeConstSpan(&id, 1), gradient}, {}, operations));
  EXPECT_FALSE(operations[0].borrows_memory());
  EXPECT_EQ(operations[0].bytes, sizeof(uint64_t) + kWidth * 2);
}

TEST(RowRequestsTest, APushThatNoMessageHoldsIsRefused) {
  const RowOperations rows = Make(1);
  const std::vector<uint64_t> ids(16 << 20);
  const std::vector<float> gradients(ids.size() * kWidth);
  Operations operations;
  EXPECT_THAT(rows.AddPushes(PushCall(), {0, ids, gradients}, /*values=*/{},
                             operations),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table users: gradients of 16777216 rows")));
}

TEST(RowRequestsTest, ATableMustBeTheSameOnEveryShard) {
  wire::GetPlacementResponse placement = Placement(2);
  placement.mutable_shard(1)->mutable_table(0)->set_width(4);
  EXPECT_THAT(RowOperations::Make(placement, {"users"}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table users differs on ps/1")));
  placement.mutable_shard(1)->clear_table();
  EXPECT_THAT(RowOperations::Make(placement, {"users"}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table users is not on ps/1")));
}

}  // namespace
}  // namespace parasol
