#include "ps/parameter_table.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/rpc/chunk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/table_testing.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kChunk = kChunkElements;
constexpr uint64_t kWorker = 7;

// "big": two chunks and 9 elements; "small": 5 elements. All values are 1.
std::unique_ptr<ParameterTable> MakeTable() {
  const std::vector<wire::PartSpec> parts = {
      MakePart(0, "big", 2 * kChunk + 9, 0, 2 * kChunk + 9),
      MakePart(1, "small", 5, 0, 5)};
  auto layout = TableLayout::Create({parts.begin(), parts.end()}, UINT64_MAX);
  auto table = ParameterTable::Create(
      *std::move(layout), MakeAddingOptimizer(), {},
      [](const wire::PartSpec&, int array, int64_t,
         absl::Span<float> out) -> absl::StatusOr<int64_t> {
        std::fill(out.begin(), out.end(), array == kValueArray ? 1 : 100);
        return 0;
      });
  return *std::move(table);
}

const wire::TensorRange kBig = MakeRange(0, 0, 2 * kChunk + 9);
const wire::TensorRange kSmall = MakeRange(1, 0, 5);

std::vector<float> Values(const ParameterTable& table,
                          const wire::TensorRange& range) {
  return FloatsOf(table.Pull(MakePull({range})).value());
}

TEST(ParameterTableTest, APushChangesItsRangesAndNoOthers) {
  const auto table = MakeTable();
  const std::string gradient = Floats(kChunk, 2);
  ASSERT_THAT(table->Push(kWorker, MakePush(1, {MakeRange(0, kChunk, kChunk)}),
                          {ViewOf(gradient)}),
              IsOkAndHolds(Claim::kNew));
  const std::vector<float> big = Values(*table, kBig);
  EXPECT_EQ(std::count(big.begin(), big.begin() + kChunk, 1), kChunk);
  EXPECT_EQ(std::count(big.begin() + kChunk, big.begin() + 2 * kChunk, 3),
            kChunk);
  EXPECT_EQ(std::count(big.begin() + 2 * kChunk, big.end(), 1), 9);
  EXPECT_THAT(Values(*table, kSmall), Each(1));
}

TEST(ParameterTableTest, OneMessageMayPushManyVariablesInPiecesOfAnySize) {
  const auto table = MakeTable();
  const std::string big = Floats(2 * kChunk + 9, 2), small = Floats(5, 4);
  ASSERT_OK(table->Push(kWorker, MakePush(1, {kBig, kSmall}),
                        {ViewOf(big, 1021), ViewOf(small, 3)}));
  EXPECT_THAT(Values(*table, kBig), Each(3));
  EXPECT_THAT(Values(*table, kSmall), Each(5));
}

TEST(ParameterTableTest, ADuplicateIsAnsweredWithoutApplyingIt) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  for (const Claim want : {Claim::kNew, Claim::kDuplicate}) {
    EXPECT_THAT(table->Push(kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}),
                IsOkAndHolds(want));
  }
  EXPECT_THAT(Values(*table, kSmall), Each(3));
}

TEST(ParameterTableTest, ARejectedPushChangesNothingAndClaimsNothing) {
  const auto table = MakeTable();
  const std::string small = Floats(5, 2), short_by_one = Floats(4, 2),
                    big = Floats(2 * kChunk + 9, 2);
  const std::string odd = small.substr(1);
  struct Case {
    uint64_t worker;
    wire::Push push;
    std::vector<PayloadView> gradients;
  };
  const Case cases[] = {
      {kWorker, MakePush(1, {kSmall}), {}},
      {kWorker, MakePush(1, {kSmall}), {ViewOf(small), ViewOf(small)}},
      {kWorker, MakePush(1, {kSmall, kBig}), {ViewOf(small), ViewOf(small)}},
      {kWorker, MakePush(1, {kSmall}), {ViewOf(short_by_one)}},
      {kWorker, MakePush(1, {kSmall}), {ViewOf(odd)}},
      {kWorker, MakePush(1, {kSmall}), {PayloadView()}},
      {kWorker, MakePush(1, {kSmall, kSmall}), {ViewOf(small), ViewOf(small)}},
      {kWorker,
       MakePush(1, {kSmall, MakeRange(2, 0, 5)}),
       {ViewOf(small), ViewOf(small)}},
      {kWorker, MakePush(1, {MakeRange(0, UINT64_MAX, 5)}), {ViewOf(small)}},
      {kWorker, MakePush(1, {}), {}},
      {kWorker, MakePush(0, {kSmall}), {ViewOf(small)}},
      {0, MakePush(1, {kSmall}), {ViewOf(small)}},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(table->Push(c.worker, c.push, c.gradients),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << c.push.ShortDebugString();
  }
  EXPECT_THAT(Values(*table, kSmall), Each(1));
  EXPECT_THAT(Values(*table, kBig), Each(1));
  EXPECT_THAT(table->Push(kWorker, MakePush(1, {kSmall}), {ViewOf(small)}),
              IsOkAndHolds(Claim::kNew));
}

TEST(ParameterTableTest, WhatWasPulledStaysWhatItWas) {
  const auto table = MakeTable();
  const std::string gradient = Floats(2 * kChunk + 9, 2);
  const auto pulled = table->Pull(MakePull({kBig})).value();
  ASSERT_OK(table->Push(kWorker, MakePush(1, {kBig}), {ViewOf(gradient)}));
  EXPECT_THAT(FloatsOf(pulled), Each(1));
  EXPECT_THAT(Values(*table, kBig), Each(3));
}

TEST(ParameterTableTest, AnArrayThatNobodyReadsIsUpdatedInPlace) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  const void* before = table->Pull(MakePull({kSmall})).value()[0].data;
  ASSERT_OK(table->Push(kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}));
  EXPECT_EQ(table->Pull(MakePull({kSmall})).value()[0].data, before);
}

TEST(ParameterTableTest, PulledValuesOutliveTheTable) {
  auto table = MakeTable();
  const auto pulled = table->Pull(MakePull({kBig, kSmall})).value();
  table.reset();
  EXPECT_THAT(FloatsOf(pulled), Each(1));
}

TEST(ParameterTableTest, APullOfMoreThanAMessageHoldsIsRefused) {
  const int64_t elements = (48 << 20) / sizeof(float) + 1;
  const std::vector<wire::PartSpec> parts = {
      MakePart(0, "huge", elements, 0, elements)};
  const auto table = ParameterTable::Create(
      *TableLayout::Create({parts.begin(), parts.end()}, UINT64_MAX),
      MakeAddingOptimizer(), {},
      [](auto&&...) -> absl::StatusOr<int64_t> { return 0; });
  ASSERT_OK(table);
  EXPECT_THAT((*table)->Pull(MakePull({MakeRange(0, 0, elements)})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ParameterTableTest, AnErrorWhileFillingIsTheTablesError) {
  const std::vector<wire::PartSpec> parts = {MakePart(0, "a", 5, 0, 5)};
  EXPECT_THAT(
      ParameterTable::Create(
          *TableLayout::Create({parts.begin(), parts.end()}, UINT64_MAX),
          MakeAddingOptimizer(), {},
          [](auto&&...) -> absl::StatusOr<int64_t> {
            return absl::NotFoundError("no such elements");
          }),
      StatusIs(absl::StatusCode::kNotFound));
}

TEST(ParameterTableTest, ACutStaysAsItWasWhilePushesGoOn) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  ASSERT_OK(table->Push(kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}));
  const TableCut cut = table->Cut();
  ASSERT_OK(table->Push(kWorker, MakePush(2, {kSmall}), {ViewOf(gradient)}));

  const TableCut::Chunk& small = cut.chunks.back();
  EXPECT_EQ(small.variable, "small");
  EXPECT_EQ(small.contents.updates, 1);
  EXPECT_THAT(small.contents.value.span(), Each(3));
  EXPECT_THAT(small.contents.slots[0].span(), Each(102));
  DedupWindow window;
  window.Mark(1);
  EXPECT_THAT(cut.dedup, ElementsAre(std::pair(kWorker, window)));
  EXPECT_THAT(Values(*table, kSmall), Each(5));
}

// Each pusher adds 1 to all elements per push, so that a value is 1 + the
// number of pushes in it.
void PushOnes(ParameterTable& table, uint64_t worker, int pushes) {
  const std::string big = Floats(2 * kChunk + 9, 1), small = Floats(5, 1);
  for (int sequence = 1; sequence <= pushes; ++sequence) {
    ASSERT_OK(table.Push(worker, MakePush(sequence, {kBig, kSmall}),
                         {ViewOf(big, 4093), ViewOf(small)}));
  }
}

constexpr int kPushers = 3;
constexpr int kPushesEach = 60;

TEST(ParameterTableTest, ConcurrentPushesAddUpExactly) {
  const auto table = MakeTable();
  {
    std::vector<std::jthread> pushers;
    for (int i = 1; i <= kPushers; ++i) {
      pushers.emplace_back([&table, i] { PushOnes(*table, i, kPushesEach); });
    }
  }
  EXPECT_THAT(Values(*table, kBig), Each(1 + kPushers * kPushesEach));
  EXPECT_THAT(Values(*table, kSmall), Each(1 + kPushers * kPushesEach));
}

TEST(ParameterTableTest, APullSeesEachChunkWholeDuringPushes) {
  const auto table = MakeTable();
  std::jthread pusher([&table] { PushOnes(*table, 1, kPushesEach); });
  float last = 1;
  while (last < 1 + kPushesEach) {
    const auto chunks = table->Pull(MakePull({kBig})).value();
    for (const PayloadRef& chunk : chunks) {
      const std::vector<float> values = FloatsOf({chunk});
      ASSERT_THAT(values, Each(values[0]));
      last = std::min(last, values[0]);
    }
    last = Values(*table, kSmall)[0];
  }
}

int64_t PushesIn(const DedupWindows& windows) {
  int64_t pushes = 0;
  for (auto [worker, window] : windows) {
    for (int sequence = 1; sequence <= kPushesEach; ++sequence) {
      if (window.Mark(sequence) == Claim::kDuplicate) ++pushes;
    }
  }
  return pushes;
}

TEST(ParameterTableTest, ACutHoldsAPushWithItsSequenceOrNeither) {
  const auto table = MakeTable();
  std::atomic<int> running = kPushers;
  std::vector<std::jthread> pushers;
  for (int i = 1; i <= kPushers; ++i) {
    pushers.emplace_back([&table, &running, i] {
      PushOnes(*table, i, kPushesEach);
      --running;
    });
  }
  while (running > 0) {
    const TableCut cut = table->Cut();
    const int64_t pushes = PushesIn(cut.dedup);
    for (const TableCut::Chunk& chunk : cut.chunks) {
      ASSERT_EQ(chunk.contents.updates, pushes);
      ASSERT_THAT(chunk.contents.value.span(), Each(1 + pushes));
      ASSERT_THAT(chunk.contents.slots[0].span(), Each(100 + pushes));
    }
  }
}

}  // namespace
}  // namespace parasol
