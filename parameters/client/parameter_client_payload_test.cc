// What travels: small requests together, rows, encodings, synchronous steps.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/client/parameter_client.h"
#include "parameters/client/testing/parameter_client_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Fault = FakeParameterService::Fault;

TEST_F(ParameterClientTest, SmallOperationsShareMessages) {
  constexpr size_t kVariables = 300;
  AddShards(1);
  options_.streams_per_shard = 1;
  for (size_t i = 0; i < kVariables; ++i) {
    AddVariable(0, absl::StrCat("v", i), 1024);
  }
  // What is started while the stream is not there yet waits together.
  fakes_[0].StopServer();
  const auto client = Connect();
  const std::vector<float> gradient = Ramp(1024);
  std::vector<std::unique_ptr<ParameterClient::Pending>> pushes;
  for (size_t i = 0; i < kVariables; ++i) {
    pushes.push_back(client->Push({{i, gradient}}));
  }
  fakes_[0].StartServer();
  for (const auto& push : pushes) ASSERT_OK(push->Wait());
  for (uint32_t i = 0; i < kVariables; ++i) {
    ASSERT_EQ(fakes_[0].Values(i), Negative(gradient)) << i;
  }
  // The first one alone, then 256 of 4 KiB in 1 MiB.
  EXPECT_LE(fakes_[0].MessageSizes().size(), 4u);
}

TEST_F(ParameterClientTest, RowsGoRoundOverThreeShards) {
  constexpr size_t kWidth = 5;
  AddShards(3);
  AddVariable(0, "v", 3);
  AddTable("items", 1);
  AddTable("users", kWidth);
  options_.message_bytes = 1024;
  const auto client = Connect();
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 1000; ++i) ids.push_back(i * 1000003);
  const std::vector<float> gradients = Ramp(ids.size() * kWidth);
  const std::vector<float> dense = Ramp(3);
  const auto push =
      client->Push({.gradients = {{0, dense}}, .rows = {{1, ids, gradients}}});
  std::vector<uint64_t> backwards(ids.rbegin(), ids.rend());
  backwards.push_back(ids[7]);
  std::vector<float> got(backwards.size() * kWidth), got_dense(3);
  ASSERT_OK(client
                ->Pull({.targets = {{0, absl::MakeSpan(got_dense)}},
                        .rows = {{1, backwards, absl::MakeSpan(got)}}})
                ->Wait());
  ASSERT_OK(push->Wait());
  EXPECT_EQ(got_dense, Negative(dense));
  for (size_t i = 0; i < backwards.size(); ++i) {
    const size_t row = i < ids.size() ? ids.size() - 1 - i : 7;
    for (size_t j = 0; j < kWidth; ++j) {
      ASSERT_EQ(got[i * kWidth + j], -gradients[row * kWidth + j]) << i;
    }
  }
}

// The rows of a million ids, as one message.
TEST_F(ParameterClientTest, APushOf80MegabytesIsOneUpdate) {
  constexpr size_t kWidth = 1000;
  AddShards(1);
  AddTable("users", kWidth);
  const auto client = Connect();
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 20000; ++i) ids.push_back(i);
  const std::vector<float> gradients = Ramp(ids.size() * kWidth);
  ASSERT_OK(
      client->Push({.gradients = {}, .rows = {{0, ids, gradients}}})->Wait());
  EXPECT_EQ(fakes_[0].TablePushes(0), 1);
  std::vector<float> got(gradients.size());
  ASSERT_OK(
      client->Pull({.targets = {}, .rows = {{0, ids, absl::MakeSpan(got)}}})
          ->Wait());
  EXPECT_TRUE(got == Negative(gradients));
}

TEST_F(ParameterClientTest, APushOfNoRowsCountsAtEveryShard) {
  AddShards(3);
  AddTable("users", 2);
  const auto client = Connect();
  ASSERT_OK(client->Push({.gradients = {}, .rows = {{0, {}, {}}}})->Wait());
  for (auto& fake : fakes_) EXPECT_EQ(fake.TablePushes(0), 1);
}

TEST_F(ParameterClientTest, RowsOfTheWrongSizeAreRefused) {
  AddShards(1);
  AddTable("users", 2);
  const auto client = Connect();
  const std::vector<uint64_t> ids = {1};
  const std::vector<float> three = {1, 2, 3};
  EXPECT_THAT(
      client->Push({.gradients = {}, .rows = {{0, ids, three}}})->Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "table users: 3 elements for 1 rows of 2"));
  EXPECT_THAT(
      client->Push({.gradients = {}, .rows = {{1, ids, three}}})->Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "table number 1 is not in the model: it has 1"));
}

TEST_F(ParameterClientTest, HalvesTravelBothWaysAndAreResentAsTheyWere) {
  constexpr size_t kSize = 3 * kChunkElements + 7;
  for (const job::Encoding encoding : {job::FLOAT16, job::BFLOAT16}) {
    SCOPED_TRACE(encoding);
    Clear();
    AddShards(2);
    AddVariable(0, "v", kSize);
    AddTable("users", 3);
    int requests = 0;
    fakes_[0].SetFault([&](const wire::Operation&) {
      return ++requests % 5 == 0 ? Fault::kBreakAfter : Fault::kNone;
    });
    options_.wire_encoding = encoding;
    const auto client = Connect();
    std::vector<float> gradient(kSize);
    for (size_t i = 0; i < kSize; ++i) gradient[i] = i % 129;
    const std::vector<uint64_t> ids = {4, 5, 6};
    const std::vector<float> rows = {1, 2, 3, -4, 5, 6, 0.5, 8, 9};
    std::vector<float> got(kSize), got_rows(rows.size());
    ASSERT_OK(
        client->Push({.gradients = {{0, gradient}}, .rows = {{0, ids, rows}}})
            ->Wait());
    ASSERT_OK(client
                  ->Pull({.targets = {{0, absl::MakeSpan(got)}},
                          .rows = {{0, ids, absl::MakeSpan(got_rows)}}})
                  ->Wait());
    EXPECT_EQ(got, Negative(gradient));
    EXPECT_EQ(got_rows, Negative(rows));
  }
}

TEST_F(ParameterClientTest, WhatIsSparsifiedArrivesOnceAndTheRestLater) {
  constexpr size_t kSize = 2 * kChunkElements;
  AddShards(1);
  AddVariable(0, "v", kSize);
  int requests = 0;
  fakes_[0].SetFault([&](const wire::Operation&) {
    return ++requests % 3 == 0 ? Fault::kBreakAfter : Fault::kNone;
  });
  options_.push_share = 0.5;
  const auto client = Connect();
  std::vector<float> gradient(kSize, 1.0f);
  for (size_t i = 0; i < kSize; i += 2) gradient[i] = 2;
  ASSERT_OK(client->Push({{0, gradient}})->Wait());
  std::vector<float> want(kSize);
  for (size_t i = 0; i < kSize; i += 2) want[i] = -2;
  EXPECT_EQ(fakes_[0].Values(0), want);
  const std::vector<float> zeros(kSize);
  ASSERT_OK(client->Push({{0, zeros}})->Wait());
  EXPECT_EQ(fakes_[0].Values(0), Negative(gradient));
}

TEST_F(ParameterClientTest, AVariableThatIsNotTrainedTravelsInFloat32) {
  for (const job::Encoding encoding : {job::FLOAT16, job::BFLOAT16}) {
    SCOPED_TRACE(encoding);
    Clear();
    AddShards(1);
    AddVariable(0, "gamma", 3);
    AddUntrained(0, "moving_variance", 3);
    AddVariable(0, "kernel", 3);
    options_.wire_encoding = encoding;
    const auto client = Connect();
    // The last two are no numbers of 16 bits.
    const std::vector<float> short_enough = {-1, 0.5, 3};
    const std::vector<float> exact = {1, 1e5, 1.0001};
    ASSERT_OK(client->Push({{0, short_enough}, {1, exact}, {2, short_enough}})
                  ->Wait());
    std::vector<float> gamma(3), moving(3), kernel(3);
    ASSERT_OK(client
                  ->Pull({{0, absl::MakeSpan(gamma)},
                          {1, absl::MakeSpan(moving)},
                          {2, absl::MakeSpan(kernel)}})
                  ->Wait());
    EXPECT_EQ(moving, Negative(exact));
    EXPECT_EQ(gamma, Negative(short_enough));
    EXPECT_EQ(kernel, Negative(short_enough));
  }
}

TEST_F(ParameterClientTest, AVariableThatIsNotTrainedIsPushedWhole) {
  AddShards(1);
  AddVariable(0, "kernel", 4);
  AddUntrained(0, "moving_mean", 4);
  options_.push_share = 0.25;
  const auto client = Connect();
  const std::vector<float> gradient = {1, 2, 3, 4};
  ASSERT_OK(client->Push({{0, gradient}, {1, gradient}})->Wait());
  EXPECT_THAT(fakes_[0].Values(0), ElementsAre(0, 0, 0, -4));
  EXPECT_THAT(fakes_[0].Values(1), ElementsAre(-1, -2, -3, -4));
}

TEST_F(ParameterClientTest,
       ASynchronousPushSaysWhichAndLearnsWhetherItCounted) {
  AddShards(2);
  AddVariable(0, "a", 1);
  AddVariable(1, "b", 1);
  AddTable("users", 1);
  fakes_[0].SetUpdates(4, 5, /*stale=*/false);
  fakes_[1].SetUpdates(6, 7, /*stale=*/true);
  const auto client = Connect();
  const std::vector<float> one = {1};
  const std::vector<uint64_t> ids = {1};
  const auto push = client->Push({.gradients = {{0, one}, {1, one}},
                                  .rows = {{0, ids, one}},
                                  .sync = {{.step = 4, .replica = 2}}});
  ASSERT_OK(push->Wait());
  EXPECT_EQ(push->outcome().min_updates, 4);
  EXPECT_EQ(push->outcome().max_updates, 7);
  EXPECT_TRUE(push->outcome().stale);
  const std::pair<int64_t, int> step = {4, 2};
  EXPECT_THAT(fakes_[0].SyncSteps(), ElementsAre(step, step));
  EXPECT_THAT(fakes_[0].Sequences(), IsEmpty());
  std::vector<float> got(1);
  ASSERT_OK(client
                ->Pull({.targets = {{0, absl::MakeSpan(got)}},
                        .rows = {},
                        .min_updates = 5})
                ->Wait());
  EXPECT_THAT(fakes_[0].PulledMinUpdates(), ElementsAre(5));
}

TEST_F(ParameterClientTest, AShardMayHoldASynchronousPushAsLongAsItNeeds) {
  SimulatedClock clock;
  AddShards(1);
  AddVariable(0, "v", 1);
  fakes_[0].SetFault([](const wire::Operation& operation) {
    return operation.push().has_sync() ? Fault::kDropReply : Fault::kNone;
  });
  const auto client = Connect(clock);
  const std::vector<float> one = {1};
  const auto held = client->Push(
      {.gradients = {{0, one}}, .sync = {{.step = 0, .replica = 0}}});
  fakes_[0].AwaitRequests(1);
  clock.Advance(2 * options_.shard_timeout);
  EXPECT_FALSE(held->WaitFor(absl::ZeroDuration()));
  const auto answered = client->Push({{0, one}});
  EXPECT_OK(answered->Wait());
  EXPECT_TRUE(answered->WaitFor(absl::ZeroDuration()));
  EXPECT_FALSE(held->WaitFor(absl::ZeroDuration()));
  client->Stop();
  EXPECT_THAT(held->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ParameterClientTest, AShareThatIsNoneIsRefused) {
  AddShards(1);
  for (const double share : {0.0, -1.0, 1.5}) {
    options_.push_share = share;
    EXPECT_THAT(ParameterClient::Create(placement_, {}, {}, options_,
                                        Clock::Real(), metrics_)
                    .status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace parasol
