// Pushes and pulls that travel as one operation.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/client/parameter_client.h"
#include "parameters/client/testing/parameter_client_fixture.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Fault = FakeParameterService::Fault;

TEST_F(ParameterClientTest, WhatIsPushedAndPulledIsOneOperation) {
  constexpr size_t kWidth = 5;
  constexpr size_t kBig = 20 * kChunkElements + 3;
  AddShards(2);
  AddVariable(0, "big", kBig);
  AddVariable(0, "pushed", 2);
  AddVariable(1, "pulled", 4);
  AddTable("users", kWidth);
  options_.message_bytes = kChunkElements * sizeof(float) * 3;
  std::atomic<int> requests = 0;
  for (auto& fake : fakes_) {
    fake.SetFault([&](const wire::Operation&) {
      ++requests;
      return Fault::kNone;
    });
  }
  const auto client = Connect();
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 1000; ++i) ids.push_back(i % 900 * 1000003);
  const std::vector<float> gradients(ids.size() * kWidth, 1);
  const std::vector<float> big = Ramp(kBig), pushed = Ramp(2);
  std::vector<float> got_big(kBig), got_pulled(4, 1), rows(gradients.size());
  for (int i = 1; i <= 3; ++i) {
    requests = 0;
    auto [push, pull] = client->PushPull(
        {.gradients = {{0, big}, {1, pushed}}, .rows = {{0, ids, gradients}}},
        {.targets = {{2, absl::MakeSpan(got_pulled)},
                     {0, absl::MakeSpan(got_big)}},
         .rows = {{0, ids, absl::MakeSpan(rows)}}});
    ASSERT_OK(pull->Wait());
    ASSERT_OK(push->Wait());
    std::vector<float> want = Negative(big);
    for (float& value : want) value *= i;
    EXPECT_EQ(got_big, want);
    EXPECT_EQ(fakes_[0].Values(1), (std::vector<float>{-1.0f * i, -2.0f * i}));
    EXPECT_THAT(got_pulled, ElementsAre(0, 0, 0, 0));
    for (size_t at = 0; at < ids.size(); ++at) {
      const bool is_repeated = ids[at] < 100 * 1000003;
      ASSERT_EQ(rows[at * kWidth], is_repeated ? -2 * i : -i) << at;
    }
    // The big variable's 21 chunks, the others, and the table at each shard.
    EXPECT_EQ(requests, 21 + 1 + 1 + 2);
  }
}

TEST_F(ParameterClientTest, APushPullThatIsSentAgainHasItsValuesAllTheSame) {
  constexpr size_t kSize = 20 * kChunkElements;
  for (const Fault fault :
       {Fault::kBreakBefore, Fault::kBreakAfter, Fault::kUnavailable}) {
    SCOPED_TRACE(static_cast<int>(fault));
    placement_.clear_shard();
    fakes_.clear();
    names_.clear();
    AddShards(1);
    AddVariable(0, "v", kSize);
    std::atomic<int> requests = 0;
    fakes_[0].SetFault([&](const wire::Operation&) {
      return ++requests % 7 == 0 ? fault : Fault::kNone;
    });
    const auto client = Connect();
    const std::vector<float> ones(kSize, 1.0f);
    std::vector<float> got(kSize);
    for (int i = 1; i <= 5; ++i) {
      auto [push, pull] = client->PushPull(
          {.gradients = {{0, ones}}}, {.targets = {{0, absl::MakeSpan(got)}}});
      ASSERT_OK(push->Wait());
      ASSERT_OK(pull->Wait());
      EXPECT_EQ(got, std::vector<float>(kSize, -i));
    }
  }
}

TEST_F(ParameterClientTest, APsThatKnowsNoPushPullIsNamed) {
  AddShards(1);
  AddVariable(0, "v", 2);
  fakes_[0].SetFault([](const wire::Operation&) { return Fault::kNoValues; });
  const auto client = Connect();
  const std::vector<float> gradient = {1, 2};
  std::vector<float> got(2);
  auto [push, pull] = client->PushPull({.gradients = {{0, gradient}}},
                                       {.targets = {{0, absl::MakeSpan(got)}}});
  EXPECT_THAT(pull->Wait(), StatusIs(absl::StatusCode::kInternal,
                                     AllOf(HasSubstr("ps/0 at"),
                                           HasSubstr("older version"))));
  EXPECT_THAT(push->Wait(), StatusIs(absl::StatusCode::kInternal));
}

// The values behind the first gradient lack the second.
TEST_F(ParameterClientTest, AVariableThatIsPushedTwiceIsPulledBehindBoth) {
  AddShards(1);
  AddVariable(0, "v", 2);
  const auto client = Connect();
  const std::vector<float> first = {1, 2}, second = {10, 20};
  std::vector<float> got(2), again(2);
  auto [push, pull] = client->PushPull(
      {.gradients = {{0, first}, {0, second}}},
      {.targets = {{0, absl::MakeSpan(got)}, {0, absl::MakeSpan(again)}}});
  ASSERT_OK(push->Wait());
  ASSERT_OK(pull->Wait());
  EXPECT_THAT(got, ElementsAre(-11, -22));
  EXPECT_THAT(again, ElementsAre(-11, -22));
}

TEST_F(ParameterClientTest, ATableThatIsPushedTwiceIsPulledBehindBoth) {
  AddShards(1);
  AddTable("users", 1);
  const auto client = Connect();
  const std::vector<uint64_t> ids = {4, 5};
  const std::vector<float> first = {1, 2}, second = {10, 20};
  std::vector<float> got(2);
  auto [push, pull] = client->PushPull(
      {.gradients = {}, .rows = {{0, ids, first}, {0, ids, second}}},
      {.targets = {}, .rows = {{0, ids, absl::MakeSpan(got)}}});
  ASSERT_OK(push->Wait());
  ASSERT_OK(pull->Wait());
  EXPECT_THAT(got, ElementsAre(-11, -22));
}

TEST_F(ParameterClientTest, PushPullsOfHalvesAndSharesHaveAllValues) {
  AddShards(1);
  AddVariable(0, "v", 100);
  options_.wire_encoding = job::BFLOAT16;
  options_.push_share = .1;
  const auto client = Connect();
  std::vector<float> gradient(100, 1), got(100, 5);
  gradient[7] = 4;
  auto [push, pull] = client->PushPull({.gradients = {{0, gradient}}},
                                       {.targets = {{0, absl::MakeSpan(got)}}});
  ASSERT_OK(push->Wait());
  ASSERT_OK(pull->Wait());
  EXPECT_EQ(got, fakes_[0].Values(0));
  EXPECT_EQ(got[7], -4);
  EXPECT_EQ(std::count(got.begin(), got.end(), 0), 90);
  EXPECT_EQ(Metric("parasol_worker_push_bytes_total"), "60");
  EXPECT_EQ(Metric("parasol_worker_pull_bytes_total"), "200");
}

}  // namespace
}  // namespace parasol
