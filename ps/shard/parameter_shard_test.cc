#include "ps/shard/parameter_shard.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/dense/part_optimizers.h"
#include "ps/testing/requests.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kChunk = kChunkElements;
constexpr uint64_t kWorker = 7;

// "big": two chunks and 9 elements; "small": 5 elements. All values are 1.
std::unique_ptr<ParameterShard> MakeTable(
    NonFinite non_finite = NonFinite::kReject,
    std::unique_ptr<const Optimizer> optimizer = MakeAddingOptimizer()) {
  const std::vector<wire::PartSpec> parts = {
      MakePart(0, "big", 2 * kChunk + 9, 0, 2 * kChunk + 9),
      MakePart(1, "small", 5, 0, 5)};
  auto layout = PartLayout::Create({parts.begin(), parts.end()}, UINT64_MAX);
  auto dense = DenseParts::Create(
      *std::move(layout), PartOptimizers(std::move(optimizer)),
      {.non_finite = non_finite},
      [](const wire::PartSpec&, int array, int64_t,
         absl::Span<float> out) -> absl::StatusOr<int64_t> {
        std::fill(out.begin(), out.end(), array == kValueArray ? 1 : 100);
        return 0;
      });
  return std::make_unique<ParameterShard>(
      *std::move(dense), std::vector<std::unique_ptr<SparseTable>>(),
      std::nullopt, DedupWindows());
}

absl::StatusOr<Claim> Push(ParameterShard& table, uint64_t worker,
                           const wire::Push& push,
                           const std::vector<PayloadView>& gradients) {
  PendingResult pending;
  table.Execute(worker, OperationOf(push), gradients, pending.Done());
  RETURN_IF_ERROR(pending.Get().status());
  return pending.Get()->duplicate ? Claim::kDuplicate : Claim::kNew;
}

absl::StatusOr<OperationResult::Payloads> Pull(ParameterShard& table,
                                               const wire::Pull& pull) {
  PendingResult pending;
  table.Execute(/*worker_incarnation=*/1, OperationOf(pull), {},
                pending.Done());
  RETURN_IF_ERROR(pending.Get().status());
  return pending.Get()->payloads;
}

const wire::TensorRange kBig = MakeRange(0, 0, 2 * kChunk + 9);
const wire::TensorRange kSmall = MakeRange(1, 0, 5);

std::vector<float> Values(ParameterShard& table,
                          const wire::TensorRange& range) {
  return FloatsOf(Pull(table, MakePull({range})).value());
}

TEST(ParameterShardTest, APushChangesItsRangesAndNoOthers) {
  const auto table = MakeTable();
  const std::string gradient = Floats(kChunk, 2);
  ASSERT_THAT(Push(*table, kWorker, MakePush(1, {MakeRange(0, kChunk, kChunk)}),
                   {ViewOf(gradient)}),
              IsOkAndHolds(Claim::kNew));
  const std::vector<float> big = Values(*table, kBig);
  EXPECT_EQ(std::count(big.begin(), big.begin() + kChunk, 1), kChunk);
  EXPECT_EQ(std::count(big.begin() + kChunk, big.begin() + 2 * kChunk, 3),
            kChunk);
  EXPECT_EQ(std::count(big.begin() + 2 * kChunk, big.end(), 1), 9);
  EXPECT_THAT(Values(*table, kSmall), Each(1));
}

TEST(ParameterShardTest, OneMessageMayPushManyVariablesInPiecesOfAnySize) {
  const auto table = MakeTable();
  const std::string big = Floats(2 * kChunk + 9, 2), small = Floats(5, 4);
  ASSERT_OK(Push(*table, kWorker, MakePush(1, {kBig, kSmall}),
                 {ViewOf(big, 1021), ViewOf(small, 3)}));
  EXPECT_THAT(Values(*table, kBig), Each(3));
  EXPECT_THAT(Values(*table, kSmall), Each(5));
}

TEST(ParameterShardTest, ADuplicateIsAnsweredWithoutApplyingIt) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  for (const Claim want : {Claim::kNew, Claim::kDuplicate}) {
    EXPECT_THAT(
        Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}),
        IsOkAndHolds(want));
  }
  EXPECT_THAT(Values(*table, kSmall), Each(3));
}

TEST(ParameterShardTest, APushPullIsAnsweredWithTheValuesBehindIt) {
  const auto table = MakeTable();
  const std::string big = Floats(2 * kChunk + 9, 2), small = Floats(5, 4);
  wire::Push push = MakePush(1, {kSmall, kBig});
  push.set_with_values(true);
  for (const bool is_duplicate : {false, true}) {
    PendingResult pending;
    table->Execute(kWorker, OperationOf(push), {{ViewOf(small), ViewOf(big)}},
                   pending.Done());
    ASSERT_OK(pending.Get());
    EXPECT_EQ(pending.Get()->duplicate, is_duplicate);
    EXPECT_EQ(pending.Get()->min_updates, 1);
    const std::vector<float> values = FloatsOf(pending.Get()->payloads);
    ASSERT_EQ(values.size(), 5 + 2 * kChunk + 9);
    EXPECT_EQ(std::count(values.begin(), values.begin() + 5, 5), 5);
    EXPECT_EQ(std::count(values.begin() + 5, values.end(), 3), 2 * kChunk + 9);
  }
}

TEST(ParameterShardTest, APushPullIsOfTheEncodingOfItsGradient) {
  const auto table = MakeTable();
  const std::string gradient = Halves(5, 2);
  wire::Push push = MakePush(1, {kSmall});
  push.set_encoding(wire::BFLOAT16);
  push.set_with_values(true);
  PendingResult pending;
  table->Execute(kWorker, OperationOf(push), {{ViewOf(gradient)}},
                 pending.Done());
  ASSERT_OK(pending.Get());
  ASSERT_EQ(pending.Get()->payloads.size(), 1u);
  const PayloadRef& values = pending.Get()->payloads[0];
  EXPECT_EQ(std::string(static_cast<const char*>(values.data), values.size),
            Halves(5, 3));
}

// Changes nothing, but calls back while it is at it.
class CallingOptimizer : public Optimizer {
 public:
  explicit CallingOptimizer(std::function<void()> call)
      : call_(std::move(call)) {}

  const std::vector<std::string>& slot_names() const override { return none_; }
  float InitialSlotValue(size_t) const override { return 0; }
  void Apply(int64_t, const UpdateSpan&) const override { call_(); }
  UpdateRule RuleAt(int64_t) const override { return SgdRule{0}; }
  OtherRows other_rows() const override { return OtherRows::kUntouched; }
  void ApplyRows(int64_t, const RowUpdate&) const override {}

 private:
  const std::function<void()> call_;
  const std::vector<std::string> none_;
};

TEST(ParameterShardTest, APushThatMayYetFailIsNotAcknowledgedToItsResend) {
  std::unique_ptr<ParameterShard> table;
  const std::string gradient = Floats(5, 1);
  const auto push = [&] {
    return Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)});
  };
  absl::StatusOr<Claim> resent;
  table = MakeTable(NonFinite::kReject, std::make_unique<CallingOptimizer>([&] {
                      std::jthread other_stream([&] { resent = push(); });
                    }));
  EXPECT_THAT(push(), IsOkAndHolds(Claim::kNew));
  EXPECT_THAT(resent.status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(push(), IsOkAndHolds(Claim::kDuplicate));
}

TEST(ParameterShardTest, ARejectedPushChangesNothingAndClaimsNothing) {
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
    EXPECT_THAT(Push(*table, c.worker, c.push, c.gradients),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << c.push.ShortDebugString();
  }
  EXPECT_THAT(Values(*table, kSmall), Each(1));
  EXPECT_THAT(Values(*table, kBig), Each(1));
  EXPECT_THAT(Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(small)}),
              IsOkAndHolds(Claim::kNew));
}

TEST(ParameterShardTest, APushThatIsNotFiniteIsRefusedWholeOrApplied) {
  std::string big = Floats(2 * kChunk + 9, 2), small = Floats(5, 2);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(small.data() + 3 * sizeof(float), &bad, sizeof(bad));
  const std::vector<PayloadView> gradients = {ViewOf(big), ViewOf(small)};
  const auto strict = MakeTable(NonFinite::kReject);
  EXPECT_THAT(Push(*strict, kWorker, MakePush(1, {kBig, kSmall}), gradients),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("\"small\" is not finite at element 3:")));
  EXPECT_THAT(Values(*strict, kBig), Each(1));
  EXPECT_THAT(Values(*strict, kSmall), Each(1));
  const auto lax = MakeTable(NonFinite::kApply);
  EXPECT_OK(Push(*lax, kWorker, MakePush(1, {kBig, kSmall}), gradients));
  EXPECT_THAT(Values(*lax, kBig), Each(3));
}

TEST(ParameterShardTest, PushesAndPullsMayBeOf16Bits) {
  const auto table = MakeTable();
  const std::string bytes = Halves(2 * kChunk + 9, .5f);
  wire::Push push = MakePush(1, {kBig});
  push.set_encoding(wire::BFLOAT16);
  ASSERT_OK(Push(*table, kWorker, push, {ViewOf(bytes, 4093)}));
  EXPECT_THAT(Values(*table, kBig), Each(1.5f));
  wire::Pull pull = MakePull({kBig});
  pull.set_encoding(wire::BFLOAT16);
  const auto pulled = Pull(*table, pull);
  ASSERT_OK(pulled);
  std::string got;
  for (const PayloadRef& payload : *pulled) {
    got.append(static_cast<const char*>(payload.data), payload.size);
  }
  EXPECT_EQ(got, Halves(2 * kChunk + 9, 1.5f));
}

TEST(ParameterShardTest, ASparsifiedPushUpdatesEveryElementOfItsRanges) {
  const auto table = MakeTable();
  const uint32_t offset = 2;
  const float element = 4;
  std::string bytes(sizeof(offset) + sizeof(element), '\0');
  std::memcpy(bytes.data(), &offset, sizeof(offset));
  std::memcpy(bytes.data() + sizeof(offset), &element, sizeof(element));
  wire::Push push = MakePush(1, {kSmall});
  push.add_kept(1);
  ASSERT_OK(Push(*table, kWorker, push, {ViewOf(bytes)}));
  EXPECT_THAT(Values(*table, kSmall), ElementsAre(1, 1, 5, 1, 1));
  EXPECT_EQ(table->TakeSnapshot().chunks.back().contents.updates, 1);
}

TEST(ParameterShardTest, AResultTellsHowManyUpdatesThereHaveBeen) {
  const auto table = MakeTable();
  const std::string small = Floats(5, 1), big = Floats(2 * kChunk + 9, 1);
  ASSERT_OK(Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(small)}));
  PendingResult push, pull;
  table->Execute(kWorker, OperationOf(MakePush(2, {kSmall, kBig})),
                 {{ViewOf(small), ViewOf(big)}}, push.Done());
  EXPECT_EQ(push.Get()->min_updates, 1);
  EXPECT_EQ(push.Get()->max_updates, 2);
  table->Execute(/*worker_incarnation=*/1,
                 OperationOf(MakePull({kSmall, kBig})), {}, pull.Done());
  EXPECT_EQ(pull.Get()->min_updates, 1);
  EXPECT_EQ(pull.Get()->max_updates, 2);
}

TEST(ParameterShardTest, NothingSynchronousIsTakenByAnAsynchronousTable) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  wire::Push push = MakePush(1, {kSmall});
  push.mutable_sync()->set_step(0);
  EXPECT_THAT(Push(*table, kWorker, push, {ViewOf(gradient)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  wire::Pull pull = MakePull({kSmall});
  pull.set_min_updates(1);
  EXPECT_THAT(Pull(*table, pull), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(table->BeginSnapshotAt(1).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ParameterShardTest, WhatWasPulledStaysWhatItWas) {
  const auto table = MakeTable();
  const std::string gradient = Floats(2 * kChunk + 9, 2);
  const auto pulled = Pull(*table, MakePull({kBig})).value();
  ASSERT_OK(Push(*table, kWorker, MakePush(1, {kBig}), {ViewOf(gradient)}));
  EXPECT_THAT(FloatsOf(pulled), Each(1));
  EXPECT_THAT(Values(*table, kBig), Each(3));
}

TEST(ParameterShardTest, AnArrayThatNobodyReadsIsUpdatedInPlace) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  const void* before = Pull(*table, MakePull({kSmall})).value()[0].data;
  ASSERT_OK(Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}));
  EXPECT_EQ(Pull(*table, MakePull({kSmall})).value()[0].data, before);
}

TEST(ParameterShardTest, PulledValuesOutliveTheTable) {
  auto table = MakeTable();
  const auto pulled = Pull(*table, MakePull({kBig, kSmall})).value();
  table.reset();
  EXPECT_THAT(FloatsOf(pulled), Each(1));
}

TEST(ParameterShardTest, APullOfMoreThanAMessageHoldsIsRefused) {
  const int64_t elements = kMaxPullBytes / sizeof(float) + 1;
  const std::vector<wire::PartSpec> parts = {
      MakePart(0, "huge", elements, 0, elements)};
  auto dense = DenseParts::Create(
      *PartLayout::Create({parts.begin(), parts.end()}, UINT64_MAX),
      PartOptimizers(MakeAddingOptimizer()), {},
      [](auto&&...) -> absl::StatusOr<int64_t> { return 0; });
  ASSERT_OK(dense);
  ParameterShard table(*std::move(dense), {}, std::nullopt, DedupWindows());
  EXPECT_THAT(Pull(table, MakePull({MakeRange(0, 0, elements)})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // Nor is the push of a push-pull applied.
  const std::string gradient = Floats(elements, 1);
  wire::Push push = MakePush(1, {MakeRange(0, 0, elements)});
  push.set_with_values(true);
  EXPECT_THAT(Push(table, kWorker, push, {ViewOf(gradient)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(table.progress(), 0);
}

TEST(ParameterShardTest, AnErrorWhileFillingIsTheTablesError) {
  const std::vector<wire::PartSpec> parts = {MakePart(0, "a", 5, 0, 5)};
  EXPECT_THAT(DenseParts::Create(
                  *PartLayout::Create({parts.begin(), parts.end()}, UINT64_MAX),
                  PartOptimizers(MakeAddingOptimizer()), {},
                  [](auto&&...) -> absl::StatusOr<int64_t> {
                    return absl::NotFoundError("no such elements");
                  }),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(ParameterShardTest, ASnapshotStaysAsItWasWhilePushesGoOn) {
  const auto table = MakeTable();
  const std::string gradient = Floats(5, 2);
  ASSERT_OK(Push(*table, kWorker, MakePush(1, {kSmall}), {ViewOf(gradient)}));
  const ShardSnapshot snapshot = table->TakeSnapshot();
  ASSERT_OK(Push(*table, kWorker, MakePush(2, {kSmall}), {ViewOf(gradient)}));

  const ShardSnapshot::Chunk& small = snapshot.chunks.back();
  EXPECT_EQ(small.variable, "small");
  EXPECT_EQ(small.contents.updates, 1);
  EXPECT_THAT(small.contents.value.span(), Each(3));
  EXPECT_THAT(small.contents.slots[0].span(), Each(102));
  DedupWindow window;
  window.Mark(1);
  EXPECT_THAT(snapshot.dedup, ElementsAre(std::pair(kWorker, window)));
  EXPECT_THAT(Values(*table, kSmall), Each(5));
}

// Each pusher adds 1 to all elements per push, so that a value is 1 + the
// number of pushes in it.
void PushOnes(ParameterShard& table, uint64_t worker, int pushes) {
  const std::string big = Floats(2 * kChunk + 9, 1), small = Floats(5, 1);
  for (int sequence = 1; sequence <= pushes; ++sequence) {
    ASSERT_OK(Push(table, worker, MakePush(sequence, {kBig, kSmall}),
                   {ViewOf(big, 4093), ViewOf(small)}));
  }
}

constexpr int kPushers = 3;
constexpr int kPushesEach = 60;

TEST(ParameterShardTest, ConcurrentPushesAddUpExactly) {
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

TEST(ParameterShardTest, APullSeesEachChunkWholeDuringPushes) {
  const auto table = MakeTable();
  std::jthread pusher([&table] { PushOnes(*table, 1, kPushesEach); });
  float last = 1;
  while (last < 1 + kPushesEach) {
    const auto chunks = Pull(*table, MakePull({kBig})).value();
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

TEST(ParameterShardTest, ASnapshotHoldsAPushWithItsSequenceOrNeither) {
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
    const ShardSnapshot snapshot = table->TakeSnapshot();
    const int64_t pushes = PushesIn(snapshot.dedup);
    for (const ShardSnapshot::Chunk& chunk : snapshot.chunks) {
      ASSERT_EQ(chunk.contents.updates, pushes);
      ASSERT_THAT(chunk.contents.value.span(), Each(1 + pushes));
      ASSERT_THAT(chunk.contents.slots[0].span(), Each(100 + pushes));
    }
  }
}

}  // namespace
}  // namespace parasol
