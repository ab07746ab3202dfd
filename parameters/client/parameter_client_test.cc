#include "parameters/client/parameter_client.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/client/testing/parameter_client_fixture.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Fault = FakeParameterService::Fault;

TEST_F(ParameterClientTest, ValuesGoRoundOverThreeShardsWithSplitParts) {
  constexpr int64_t kBig = 1000 * 1000;
  AddShards(3);
  placement_.set_layout(5);
  placement_.mutable_shard(0)->set_incarnation(0x77);
  names_ = {"big"};
  AddPart(0, "big", kBig, 0, 300 * 1000);
  AddPart(2, "big", kBig, 300 * 1000, 300 * 1000);
  AddVariable(1, "small", 3);
  AddPart(1, "big", kBig, 600 * 1000, kBig - 600 * 1000);
  AddVariable(2, "scalar", 1);
  const auto client = Connect();
  const std::vector<float> big = Ramp(kBig), small = Ramp(3), scalar = {5};
  ASSERT_OK(client->Push({{0, big}, {2, scalar}, {1, small}})->Wait());
  std::vector<float> got_big(kBig), got_small(3), got_scalar(1);
  ASSERT_OK(client
                ->Pull({{1, absl::MakeSpan(got_small)},
                        {0, absl::MakeSpan(got_big)},
                        {2, absl::MakeSpan(got_scalar)}})
                ->Wait());
  EXPECT_EQ(got_big, Negative(big));
  EXPECT_EQ(got_small, Negative(small));
  EXPECT_EQ(got_scalar, Negative(scalar));
  EXPECT_THAT(fakes_[0].Incarnations(), ElementsAre(kIncarnation));
  EXPECT_THAT(fakes_[0].RunIds(), ElementsAre("run-1"));
  EXPECT_THAT(fakes_[0].Layouts(), ElementsAre(5));
  EXPECT_THAT(fakes_[0].PsIncarnations(), ElementsAre(0x77));
  EXPECT_EQ(Metric("parasol_worker_push_bytes_total"), "4000016");
  EXPECT_EQ(Metric("parasol_worker_pull_bytes_total"), "4000016");
}

TEST_F(ParameterClientTest, EachShardCountsItsPushesFromOneWithoutGaps) {
  AddShards(2);
  AddVariable(0, "a", 10 * kChunkElements);
  AddVariable(1, "b", 1);
  const auto client = Connect();
  const std::vector<float> a = Ramp(10 * kChunkElements), b = {1};
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(client->Push({{0, a}, {1, b}})->Wait());
  }
  for (auto& fake : fakes_) {
    uint64_t next = 1;
    for (const auto& [sequence, times] : fake.Sequences()) {
      EXPECT_EQ(sequence, next++);
      EXPECT_EQ(times, 1);
    }
  }
  EXPECT_GE(fakes_[0].Sequences().size(), 15u);
  EXPECT_EQ(fakes_[1].Sequences().size(), 5u);
}

TEST_F(ParameterClientTest, APullSeesThePushesStartedBeforeIt) {
  constexpr size_t kSize = 20 * kChunkElements;
  AddShards(1);
  AddVariable(0, "v", kSize);
  const auto client = Connect();
  const std::vector<float> ones(kSize, 1.0f);
  std::vector<float> got(kSize);
  for (int i = 1; i <= 10; ++i) {
    const auto push = client->Push({{0, ones}});
    const auto pull = client->Pull({{0, absl::MakeSpan(got)}});
    ASSERT_OK(pull->Wait());
    ASSERT_OK(push->Wait());
    EXPECT_EQ(got, std::vector<float>(kSize, -i));
  }
}

TEST_F(ParameterClientTest, WhatABrokenStreamLeftIsSentAgainAndAppliedOnce) {
  constexpr size_t kSize = 20 * kChunkElements;
  for (const Fault fault :
       {Fault::kBreakBefore, Fault::kBreakAfter, Fault::kUnavailable}) {
    SCOPED_TRACE(static_cast<int>(fault));
    placement_.clear_shard();
    fakes_.clear();
    names_.clear();
    AddShards(1);
    AddVariable(0, "v", kSize);
    int requests = 0;
    fakes_[0].SetFault([&](const wire::Operation&) {
      // Not the last operation of each message.
      return ++requests % 7 == 0 ? fault : Fault::kNone;
    });
    const auto client = Connect();
    const std::vector<float> gradient = Ramp(kSize);
    for (int i = 0; i < 3; ++i)
      ASSERT_OK(client->Push({{0, gradient}})->Wait());
    std::vector<float> got(kSize);
    ASSERT_OK(client->Pull({{0, absl::MakeSpan(got)}})->Wait());
    std::vector<float> want = Negative(gradient);
    for (float& value : want) value *= 3;
    EXPECT_EQ(got, want);
    uint64_t next = 1;
    for (const auto& [sequence, times] : fakes_[0].Sequences()) {
      EXPECT_EQ(sequence, next++);
    }
    EXPECT_NE(Metric("parasol_worker_resent_requests_total"), "0");
  }
}

TEST_F(ParameterClientTest, AShardThatComesBackIsGivenWhatItHadNotAnswered) {
  AddShards(2);
  AddVariable(0, "a", 3);
  AddVariable(1, "b", 3);
  fakes_[1].SetFault([](const wire::Operation&) { return Fault::kDropReply; });
  const auto client = Connect();
  const std::vector<float> gradient = Ramp(3);
  const auto push = client->Push({{0, gradient}, {1, gradient}});
  fakes_[1].AwaitRequests(1);
  fakes_[1].SetFault(nullptr);
  fakes_[1].StopServer();
  fakes_[1].StartServer();
  ASSERT_OK(push->Wait());
  EXPECT_EQ(fakes_[1].Values(0), Negative(gradient));
  EXPECT_EQ(fakes_[1].Sequences()[1], 2);
}

TEST_F(ParameterClientTest, AShardThatMovedIsFoundByTheNewPlacement) {
  AddShards(2);
  AddVariable(0, "v", 3);
  fakes_[0].SetFault([](const wire::Operation&) { return Fault::kDropReply; });
  fakes_[1].AddPart(0, 3);
  wire::Shard moved = placement_.shard(0);
  moved.set_address(placement_.shard(1).address());
  moved.set_incarnation(0x78);
  placement_.mutable_shard()->RemoveLast();
  const auto client = Connect();
  const std::vector<float> gradient = Ramp(3);
  const auto push = client->Push({{0, gradient}});
  fakes_[0].AwaitRequests(1);
  *placement_.mutable_shard(0) = moved;
  ASSERT_OK(client->Update(placement_));
  ASSERT_OK(push->Wait());
  EXPECT_EQ(fakes_[1].Values(0), Negative(gradient));
  EXPECT_THAT(fakes_[1].PsIncarnations(), ElementsAre(0x78));
}

TEST_F(ParameterClientTest, AnotherShardingIsNoUpdate) {
  AddShards(1);
  AddVariable(0, "v", 3);
  const auto client = Connect();
  placement_.set_layout(6);
  EXPECT_THAT(client->Update(placement_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  placement_.set_layout(0);
  EXPECT_OK(client->Update(placement_));
  placement_.mutable_shard(0)->mutable_part(0)->set_id(4);
  EXPECT_THAT(client->Update(placement_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ParameterClientTest, NoPushRunsAheadOfTheDedupWindow) {
  constexpr int kPushes = 2 * kDedupWindow;
  AddShards(1);
  options_.message_bytes = sizeof(float);
  for (int i = 0; i < kPushes; ++i) AddVariable(0, absl::StrCat("v", i), 1);
  // The first push is not answered until all that may overtake it have come.
  fakes_[0].SetFault([](const wire::Operation& operation) {
    return operation.push().sequence() == 1 ? Fault::kDropReply : Fault::kNone;
  });
  const auto client = Connect();
  const std::vector<float> one = {1};
  std::vector<ParameterClient::Gradient> gradients;
  for (size_t i = 0; i < kPushes; ++i) gradients.push_back({i, one});
  const auto push = client->Push(gradients);
  fakes_[0].AwaitRequests(kDedupWindow);
  fakes_[0].SetFault(nullptr);
  fakes_[0].StopServer();
  fakes_[0].StartServer();
  ASSERT_OK(push->Wait());
  EXPECT_EQ(fakes_[0].MaxAhead(), kDedupWindow - 1);
  EXPECT_EQ(fakes_[0].Sequences().size(), size_t{kPushes});
}

TEST_F(ParameterClientTest, AShardThatNeverAnswersIsNamedAfterItsTime) {
  SimulatedClock clock;
  AddShards(2);
  AddVariable(0, "a", 1);
  AddVariable(1, "b", 1);
  fakes_[1].StopServer();
  const auto client = Connect(clock);
  const std::vector<float> one = {1};
  ASSERT_OK(client->Push({{0, one}})->Wait());
  const auto push = client->Push({{1, one}});
  clock.Advance(options_.shard_timeout);
  EXPECT_THAT(
      push->Wait(),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(absl::StrCat("ps/1 at ", placement_.shard(1).address(),
                                      " has not answered for 5m"))));
  fakes_[1].StartServer();
  EXPECT_OK(client->Push({{1, one}})->Wait());
}

TEST_F(ParameterClientTest, AShardThatIsBeingLoadedIsWaitedFor) {
  SimulatedClock clock;
  AddShards(2);
  AddVariable(0, "a", 1);
  AddVariable(1, "b", 1);
  fakes_[1].StopServer();
  const auto client = Connect(clock);
  const std::vector<float> one = {1};
  client->ShardsAreLoading({1});
  EXPECT_EQ(client->Unanswered().last_loading,
            absl::InfinitePast());  // nothing waits
  const auto push = client->Push({{1, one}});
  for (int i = 0; i < 3; ++i) {
    clock.Advance(options_.shard_timeout - absl::Seconds(1));
    client->ShardsAreLoading({1, 2, -1});
    EXPECT_EQ(client->Unanswered().last_loading, clock.Now());
  }
  clock.Advance(options_.shard_timeout);
  EXPECT_THAT(push->Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("has not answered for 19m57s")));
}

TEST_F(ParameterClientTest, AWaitingShardIsCountedUntilItAnswers) {
  SimulatedClock clock;
  options_.shard_timeout = absl::InfiniteDuration();
  AddShards(1);
  AddVariable(0, "v", 1);
  fakes_[0].SetFault(
      [](const wire::Operation&) { return Fault::kUnavailable; });
  const auto client = Connect(clock);
  const std::vector<float> one = {1};
  const auto push = client->Push({{0, one}});
  clock.Advance(absl::Seconds(20));
  while (Metric("parasol_worker_shards_waiting") != "1") {
    std::this_thread::yield();
  }
  fakes_[0].SetFault(nullptr);
  std::atomic<bool> answered = false;
  std::thread time([&] {
    while (!answered) clock.Advance(absl::Milliseconds(1));
  });
  EXPECT_OK(push->Wait());
  answered = true;
  time.join();
  EXPECT_EQ(Metric("parasol_worker_shards_waiting"), "0");
}

TEST_F(ParameterClientTest, AnErrorOfTheShardIsTheCallsAndNamesTheShard) {
  AddShards(2);
  AddVariable(0, "a", 1);
  AddVariable(1, "b", 1);
  fakes_[1].SetFault([](const wire::Operation&) { return Fault::kOtherRun; });
  const auto client = Connect();
  const std::vector<float> one = {1};
  EXPECT_THAT(
      client->Push({{0, one}, {1, one}})->Wait(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("ps/1 at 127.0.0.1"), HasSubstr("not now"))));
  EXPECT_EQ(fakes_[0].Values(0), Negative(one));
}

TEST_F(ParameterClientTest, AnAnswerOfTheWrongSizeIsAnError) {
  AddShards(1);
  AddVariable(0, "v", 1);
  fakes_[0].SetFault([](const wire::Operation&) { return Fault::kShortReply; });
  const auto client = Connect();
  std::vector<float> got(1);
  EXPECT_THAT(client->Pull({{0, absl::MakeSpan(got)}})->Wait(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("3 bytes for elements of 4")));
}

TEST_F(ParameterClientTest, AnAnswerThatNamesOtherSizesIsNotUsed) {
  AddShards(1);
  AddVariable(0, "v", 1);
  std::atomic<int> asked = 0;
  fakes_[0].SetFault([&](const wire::Operation&) {
    return ++asked == 1 ? Fault::kWrongSizes : Fault::kNone;
  });
  const auto client = Connect();
  std::vector<float> got(1, 7);
  ASSERT_OK(client->Pull({{0, absl::MakeSpan(got)}})->Wait());
  EXPECT_EQ(asked, 2) << "the pull was sent again";
  EXPECT_EQ(got[0], 0);
}

TEST_F(ParameterClientTest, MemoryOfAnotherSizeThanTheVariableIsRefused) {
  AddShards(1);
  AddVariable(0, "v", 3);
  const auto client = Connect();
  const std::vector<float> two = {1, 2};
  EXPECT_THAT(client->Push({{0, two}})->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "variable v has 3 elements, not 2"));
  EXPECT_THAT(client->Push({{1, two}})->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ParameterClientTest, StopEndsAllWaits) {
  AddShards(2);
  AddVariable(0, "silent", 1);
  AddVariable(1, "absent", 1);
  fakes_[0].SetFault([](const wire::Operation&) { return Fault::kDropReply; });
  fakes_[1].StopServer();
  const auto client = Connect();
  const std::vector<float> one = {1};
  const auto silent = client->Push({{0, one}});
  const auto absent = client->Push({{1, one}});
  fakes_[0].AwaitRequests(1);
  std::thread stopping([&] { client->Stop(); });
  client->Stop();
  stopping.join();
  EXPECT_THAT(silent->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(absent->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client->Push({{0, one}})->Wait(),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ParameterClientTest, ManyThreadsMayShareAClient) {
  constexpr size_t kSize = 3 * kChunkElements;
  AddShards(2);
  AddPart(0, "v", 2 * kSize, 0, kSize);
  AddPart(1, "v", 2 * kSize, kSize, kSize);
  names_ = {"v"};
  int requests = 0;
  fakes_[0].SetFault([&](const wire::Operation&) {
    return ++requests % 17 == 0 ? Fault::kBreakAfter : Fault::kNone;
  });
  const auto client = Connect();
  const std::vector<float> ones(2 * kSize, 1.0f);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 5; ++j) {
        EXPECT_OK(client->Push({{0, ones}})->Wait());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> got(2 * kSize);
  ASSERT_OK(client->Pull({{0, absl::MakeSpan(got)}})->Wait());
  EXPECT_EQ(got, std::vector<float>(2 * kSize, -20.0f));
}

}  // namespace
}  // namespace parasol
