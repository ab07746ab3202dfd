#include "ps/standby/standby_host.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/journal/standby_feed.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"

// A shard, its standby on another ps, and the shard's successor.
namespace parasol::parameter_server_testing {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kHostIncarnation = 0x99;

// A ps whose shard has a standby.
struct Primary {
  explicit Primary(StandbyHost* takes_from = nullptr, int64_t epoch = 1,
                   bool takes_shard = false)
      : metrics(registry),
        server(
            {.task = "ps/0",
             .incarnation = kIncarnation,
             .take_standby = [takes_from, epoch](const wire::LoadRequest& order)
                 -> absl::StatusOr<ShardState> {
               return takes_from->Take(TakeRequest(order, epoch));
             },
             .take_shard =
                 takes_shard ? TakerFrom(*takes_from, epoch) : nullptr,
             .on_loaded =
                 [this](const std::shared_ptr<ParameterShard>& loaded,
                        const wire::LoadRequest& given, bool) {
                   shard = loaded;
                   order = given;
                 }},
            clock, metrics) {}

  static std::function<absl::StatusOr<StandbyShard>(const wire::LoadRequest&)>
  TakerFrom(StandbyHost& host, int64_t epoch) {
    return [&host, epoch](const wire::LoadRequest& order) {
      return host.TakeShard(TakeRequest(order, epoch));
    };
  }
  static wire::TakeStandbyRequest TakeRequest(const wire::LoadRequest& order,
                                              int64_t epoch) {
    wire::TakeStandbyRequest request;
    request.set_run_id(order.run_id());
    request.set_layout(order.order().layout());
    request.set_shard(order.shard());
    request.set_num_shards(order.num_shards());
    request.set_number(order.standby().number());
    request.set_ps_incarnation(PublicNumber(kHostIncarnation));
    request.set_place_epoch(epoch);
    return request;
  }

  SimulatedClock clock;
  MetricsRegistry registry;
  PsMetrics metrics;
  std::shared_ptr<ParameterShard> shard;
  wire::LoadRequest order;
  ParameterServer server;
};

class StandbyHostTest : public testing::Test {
 protected:
  StandbyHostTest()
      : host_({.task = "ps/1", .incarnation = kHostIncarnation}) {}

  static wire::LoadRequest Order(uint64_t standby = 0) {
    wire::LoadRequest order = AdamOrder();
    order.mutable_standby()->set_number(standby);
    return order;
  }
  static wire::FollowHeader Header(const wire::LoadRequest& order,
                                   int64_t epoch = 1) {
    wire::FollowHeader header;
    header.set_run_id(order.run_id());
    header.set_layout(order.order().layout());
    header.set_shard(order.shard());
    header.set_num_shards(order.num_shards());
    header.set_place_epoch(epoch);
    header.set_ps_incarnation(PublicNumber(kHostIncarnation));
    *header.mutable_load() = order;
    header.mutable_load()->clear_order();
    header.mutable_load()->mutable_standby()->set_number(
        StandbyTicket(order.shard(), order.num_shards(), kHostIncarnation));
    return header;
  }

  // Makes a standby of the primary's shard; returns its number.
  uint64_t Follow(Primary& primary, int64_t epoch = 1) {
    return FollowOn(host_, primary, epoch);
  }
  uint64_t FollowOn(StandbyHost& host, Primary& primary, int64_t epoch = 1) {
    auto stream = host.Follow(Header(primary.order, epoch), [] {});
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
    const auto snapshot = primary.shard->TakeSnapshotForStandby(
        primary.clock, [] { return false; });
    EXPECT_OK(snapshot);
    const auto state = ShardState::Write(*snapshot, primary.order.shard(),
                                         primary.order.num_shards(), 1 << 20);
    EXPECT_OK(state);
    EXPECT_OK(state->ForEachPiece([this](absl::string_view piece) {
      wire::FollowRequest message;
      message.set_state(std::string(piece));
      return stream_->Take(message).status();
    }));
    wire::FollowRequest end;
    end.set_state_end(true);
    const auto answer = stream_->Take(end);
    EXPECT_OK(answer);
    return answer.ok() ? (*answer)->number() : 0;
  }
  // Has the standby take what the feed has.
  absl::Status Pump(Primary& primary) {
    StandbyFeed& feed = *primary.shard->feed();
    while (feed.behind() > 0) {
      for (const FollowMessage& message :
           feed.Take(1 << 20, absl::ZeroDuration())) {
        ASSIGN_OR_RETURN(const std::optional<wire::FollowResponse> answer,
                         stream_->Take(WholeRequest(message)));
        if (!answer) continue;
        RETURN_IF_ERROR(feed.Held(answer->held()));
      }
    }
    return absl::OkStatus();
  }
  static void Push(Primary& primary, uint64_t sequence,
                   std::optional<int64_t> step = std::nullopt,
                   int32_t replica = 0) {
    wire::RequestHeader header = PushRequest(sequence);
    if (step) {
      wire::SyncStep& sync =
          *header.mutable_operation(0)->mutable_push()->mutable_sync();
      sync.set_step(*step);
      sync.set_replica(replica);
    }
    Send(primary, header, .01f * static_cast<float>(sequence % 7))
        .IgnoreError();
  }
  // Returns how a push of this gradient is answered, if it is at once.
  static absl::Status Send(Primary& primary, const wire::RequestHeader& header,
                           float gradient) {
    const std::string payload = Floats(kElements, gradient);
    ASSIGN_OR_RETURN(const auto message,
                     ReceivedMessage::Create(header, {ViewOf(payload)}));
    const auto answer = std::make_shared<absl::Status>();
    primary.server.Execute(message, 0,
                           [answer](absl::StatusOr<OperationResult> result) {
                             *answer = result.status();
                           });
    return *answer;
  }
  static std::vector<float> Values(Primary& primary) {
    const wire::RequestHeader request = PullRequest();
    const auto message = ReceivedMessage::Create(request, {});
    std::vector<float> values;
    primary.server.Execute(*message, 0,
                           [&](absl::StatusOr<OperationResult> result) {
                             EXPECT_OK(result);
                             if (result.ok())
                               values = FloatsOf(result->payloads);
                           });
    return values;
  }

  StandbyHost host_;
  std::unique_ptr<StandbyHost::Stream> stream_;
};

TEST_F(StandbyHostTest, TheSuccessorGoesOnExactlyWhereThePrimaryWas) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  for (uint64_t i = 1; i <= 5; ++i) Push(primary, i);
  const uint64_t number = Follow(primary);
  for (uint64_t i = 6; i <= 9; ++i) Push(primary, i);
  ASSERT_OK(Pump(primary));
  EXPECT_EQ(primary.shard->feed()->behind(), 0);

  Primary successor(&host_, /*epoch=*/2);
  ASSERT_OK(successor.server.Load(Order(number)));
  EXPECT_EQ(Values(successor), Values(primary));
  EXPECT_EQ(successor.metrics.taken_standbys_total.value(), 1);
  EXPECT_EQ(successor.metrics.lost_standbys_total.value(), 0);
  // It knows what was applied, and goes on as the primary would.
  Push(successor, 9);
  EXPECT_EQ(Values(successor), Values(primary));
  Push(successor, 10);
  Push(primary, 10);
  EXPECT_EQ(Values(successor), Values(primary));
}

TEST_F(StandbyHostTest, WhoActsHasTheStandbyItself) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  for (uint64_t i = 1; i <= 4; ++i) Push(primary, i);
  ASSERT_OK(Pump(primary));
  EXPECT_TRUE(host_.MayAct(number));

  Primary acting(&host_, /*epoch=*/2, /*takes_shard=*/true);
  ASSERT_OK(acting.server.Load(Order(number)));
  EXPECT_EQ(Values(acting), Values(primary));
  EXPECT_EQ(acting.metrics.taken_standbys_total.value(), 1);
  EXPECT_EQ(acting.metrics.lost_standbys_total.value(), 0);
  // It knows what was applied.
  Push(acting, 4);
  EXPECT_EQ(Values(acting), Values(primary));
  Push(acting, 5);
  // The primary only stood still.
  Push(primary, 5);
  EXPECT_THAT(Pump(primary), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Values(acting), Values(primary));
  // Nobody else may have it.
  EXPECT_FALSE(host_.MayAct(number));
  EXPECT_THAT(host_.LostPrimaries(), testing::IsEmpty());
  EXPECT_THAT(host_.Take(Primary::TakeRequest(Order(number), 3)).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

// A disk that refuses the journal may take it later, and nobody else has what
// the standby has.
TEST_F(StandbyHostTest, AShardThatWasTakenIsKeptUntilItIsLoaded) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  Push(primary, 1);
  ASSERT_OK(Pump(primary));
  const std::string directory = testing::TempDir() + "/kept_until_loaded";
  std::filesystem::remove_all(directory);
  std::ofstream(directory) << "a file where a folder belongs";
  Primary acting(&host_, /*epoch=*/2, /*takes_shard=*/true);
  acting.server.Registered(kChief, directory);
  wire::LoadRequest order = Order(number);
  order.set_journal(wire::LoadRequest::WRITTEN);
  EXPECT_THAT(acting.server.Load(order).status().message(),
              HasSubstr(directory));
  std::filesystem::remove(directory);
  ASSERT_OK(acting.server.Load(order));
  EXPECT_EQ(Values(acting), Values(primary));
  EXPECT_EQ(acting.metrics.lost_standbys_total.value(), 0);
  EXPECT_EQ(acting.metrics.taken_standbys_total.value(), 2);
}

TEST_F(StandbyHostTest, NobodyActsWhoDoesNotFindTheJournal) {
  for (const bool has_own : {false, true}) {
    for (const auto journal :
         {wire::LoadRequest::NONE, wire::LoadRequest::WRITTEN}) {
      StandbyHost host({.task = "ps/1",
                        .incarnation = kHostIncarnation,
                        .has_own_journals = has_own});
      Primary primary;
      ASSERT_OK(primary.server.Load(Order()));
      primary.order.set_journal(journal);
      const uint64_t number = FollowOn(host, primary);
      EXPECT_EQ(host.MayAct(number),
                !has_own || journal == wire::LoadRequest::NONE);
    }
  }
}

TEST_F(StandbyHostTest, WhoActsHasAPolicyForGradients) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  Primary acting(&host_, 2, /*takes_shard=*/true);
  ASSERT_OK(acting.server.Load(Order(number)));
  EXPECT_THAT(Send(acting, PushRequest(1), NAN),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(StandbyHostTest, TheEndOfAPrimarysStreamIsSaid) {
  int ends = 0;
  StandbyHost host({.task = "ps/1",
                    .incarnation = kHostIncarnation,
                    .on_lost_primary = [&ends] { ++ends; }});
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  // One that has yet to come is no standby.
  host.Follow(Header(primary.order), [] {}).value().reset();
  EXPECT_EQ(ends, 0);
  EXPECT_THAT(host.LostPrimaries(), testing::IsEmpty());
  const uint64_t number = FollowOn(host, primary);
  EXPECT_THAT(host.LostPrimaries(), testing::IsEmpty());
  stream_.reset();
  EXPECT_EQ(ends, 1);
  const auto lost = host.LostPrimaries();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].number(), number);
}

TEST_F(StandbyHostTest, APrimaryWhoseStandbyWasTakenIsRefused) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  Primary successor(&host_, 2);
  ASSERT_OK(successor.server.Load(Order(number)));
  const std::vector<float> taken = Values(successor);
  // It was stopped, and goes on.
  Push(primary, 1);
  EXPECT_THAT(Pump(primary), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(primary.shard->feed()->behind(), 1);
  EXPECT_THAT(host_.Follow(Header(primary.order, /*epoch=*/1), [] {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  // What was taken can be taken again, by a later process alone.
  Primary third(&host_, 3);
  ASSERT_OK(third.server.Load(Order(number)));
  EXPECT_EQ(Values(third), taken);
  EXPECT_THAT(host_.Take(Primary::TakeRequest(Order(number), 2)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StandbyHostTest, WhatIsNotThereIsALossThatIsSaid) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  for (const uint64_t wrong : {number + 2, UINT64_MAX}) {
    Primary successor(&host_, 2);
    ASSERT_OK(successor.server.Load(Order(wrong)));
    EXPECT_EQ(successor.metrics.lost_standbys_total.value(), 1);
    EXPECT_EQ(successor.metrics.taken_standbys_total.value(), 0);
  }
}

TEST_F(StandbyHostTest, AHostThatDoesNotAnswerIsAskedAgain) {
  Primary successor(&host_, 2);
  wire::TakeStandbyRequest request = Primary::TakeRequest(Order(7), 2);
  request.set_ps_incarnation(1);
  EXPECT_THAT(
      host_.Take(request).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("meant for process")));
}

TEST_F(StandbyHostTest, OnlyWhomTheChiefSendsMayMakeAStandby) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  wire::FollowHeader header = Header(primary.order);
  header.mutable_load()->mutable_standby()->set_number(1);
  EXPECT_THAT(host_.Follow(header, [] {}).status(),
              StatusIs(absl::StatusCode::kPermissionDenied));
  header = Header(primary.order);
  header.set_ps_incarnation(1);
  EXPECT_THAT(host_.Follow(header, [] {}).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(StandbyHostTest, ANewJobsRulesComeInTheirPlaceAmongThePushes) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  Push(primary, 1);
  wire::LoadRequest faster = Order();
  faster.mutable_optimizer()->mutable_adam()->set_learning_rate(.5);
  ASSERT_OK(primary.server.Load(faster));
  Push(primary, 2);
  ASSERT_OK(Pump(primary));
  Primary successor(&host_, 2);
  faster.mutable_standby()->set_number(number);
  ASSERT_OK(successor.server.Load(faster));
  EXPECT_EQ(Values(successor), Values(primary));
}

// Whoever knows it can give the primary orders.
TEST_F(StandbyHostTest, AStandbyDoesNotHearThePrimarysSecret) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  primary.shard->feed()->Begin(std::nullopt);
  wire::LoadRequest faster = Order(/*standby=*/3);
  ASSERT_EQ(faster.order().incarnation(), kIncarnation);
  faster.mutable_optimizer()->mutable_adam()->set_learning_rate(.5);
  faster.set_checkpoint("/checkpoints/ckpt-4");
  faster.set_global_step(4);
  ASSERT_OK(primary.server.Load(faster));
  const auto messages =
      primary.shard->feed()->Take(1 << 20, absl::ZeroDuration());
  ASSERT_EQ(messages.size(), 1u);
  const wire::LoadRequest& told = messages[0].request.header().load();
  EXPECT_EQ(told.optimizer().adam().learning_rate(), .5);
  EXPECT_FALSE(told.has_order());
  EXPECT_EQ(told.checkpoint(), "");
  EXPECT_FALSE(told.has_standby());
  EXPECT_EQ(told.global_step(), 0);
}

TEST_F(StandbyHostTest, ASynchronousShardGoesOnInItsStep) {
  Primary primary;
  wire::LoadRequest order = Order();
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  ASSERT_OK(primary.server.Load(order));
  Push(primary, 1, /*step=*/0, /*replica=*/0);
  Push(primary, 2, 0, 1);
  // Of step 1 one gradient has come: the cut is behind that step.
  Push(primary, 3, 1, 1);
  std::thread completes([&primary] {
    while (!primary.shard->feed()->is_streaming()) std::this_thread::yield();
    Push(primary, 4, 1, 0);
  });
  const uint64_t number = Follow(primary);
  completes.join();
  Push(primary, 5, 2, 0);
  Push(primary, 6, 2, 1);
  Push(primary, 7, 3, 1);
  ASSERT_OK(Pump(primary));
  Primary successor(&host_, 2);
  order.mutable_standby()->set_number(number);
  ASSERT_OK(successor.server.Load(order));
  EXPECT_EQ(Values(successor), Values(primary));
  // The gradient of the step that is not complete was not acknowledged: it
  // comes again.
  Push(successor, 7, 3, 1);
  Push(successor, 8, 3, 0);
  Push(primary, 8, 3, 0);
  EXPECT_EQ(Values(successor), Values(primary));
}

TEST_F(StandbyHostTest, APushThatFitsNotIsNoStandbysAnyMore) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const uint64_t number = Follow(primary);
  wire::FollowRequest message;
  message.add_record("no push");
  EXPECT_THAT(stream_->Take(message).status(),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(host_.Take(Primary::TakeRequest(Order(number), 2)).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StandbyHostTest, ItTakesWhatThePrimaryHasTaken) {
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  Follow(primary);
  wire::RequestHeader header = PushRequest(1);
  const std::string gradient =
      Floats(kElements, std::numeric_limits<float>::infinity());
  // As of a ps with --nonfinite_gradients=apply.
  StandbyFeed& feed = *primary.shard->feed();
  const PayloadView payload = ViewOf(gradient);
  ASSERT_OK(feed.ApplyAndAppend({.worker_incarnation = kWorker,
                                 .operation = header.operation(0),
                                 .payloads = {&payload, 1}},
                                std::nullopt, 0, [] { return true; }));
  EXPECT_OK(Pump(primary));
}

TEST_F(StandbyHostTest, AStandbyThatDoesNotFitIsRefusedBeforeItComes) {
  StandbyHost small({.task = "ps/1",
                     .incarnation = kHostIncarnation,
                     .memory_limit_bytes = 3 * kElements * sizeof(float),
                     .own_bytes = [] { return uint64_t{100}; }});
  Primary primary;
  ASSERT_OK(primary.server.Load(Order()));
  const auto stream = small.Follow(Header(primary.order), [] {});
  ASSERT_OK(stream);
  wire::FollowRequest message;
  message.set_state("the first piece");
  EXPECT_THAT((*stream)->Take(message).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("beside the shard of ps/1, of 100 bytes")));
}

}  // namespace
}  // namespace parasol::parameter_server_testing
