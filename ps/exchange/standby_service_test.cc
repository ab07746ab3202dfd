// A primary and the ps of its standby, over real connections: on a payload
// lane, in clear text and in TLS, and in the call where there is none; and what
// a damaged or hostile primary may send there.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/client/standby_call.h"
#include "cluster/client/standby_client.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/testing/lane_test.h"
#include "cluster/rpc/follow_frame.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/rpc/server.h"
#include "cluster/rpc/status.h"
#include "cluster/rpc/tensor_frame.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/parameter.grpc.pb.h"
#include "ps/exchange/parameter_service.h"
#include "ps/journal/standby_feed.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/shard/shard_state.h"
#include "ps/standby/standby_host.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"

namespace parasol::parameter_server_testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kHostIncarnation = 0x99;

// kBrokenLane: it opens, and breaks with its first bytes.
enum class Carrier { kLane, kTlsLane, kNoLanes, kBlockedLane, kBrokenLane };

std::shared_ptr<const Trust> KeysOf(absl::string_view task) {
  const CertificateDirectory directory(
      absl::StrCat("standby_", task.substr(task.rfind('/') + 1)), "ours");
  directory.Issue(task);
  return Trust::OfFiles(directory.files(), Clock::Real()).value();
}

// What a standby answers.
class Answers : public StandbyCall::Observer {
 public:
  void OnAnswer(const wire::FollowResponse& answer) override {
    absl::MutexLock lock(&mu_);
    EXPECT_FALSE(has_ended_) << "called after the end";
    EXPECT_TRUE(!newest_ || answer.held() >= newest_->held());
    newest_ = answer;
  }
  void OnEnd() override {
    absl::MutexLock lock(&mu_);
    EXPECT_FALSE(has_ended_) << "called twice";
    has_ended_ = true;
  }

  // Returns the first answer that says so, or nullopt if the call ends.
  std::optional<wire::FollowResponse> AwaitHeld(int64_t records) {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return has_ended_ || (newest_ && newest_->held() >= records);
    };
    mu_.Await(absl::Condition(&is_there));
    return has_ended_ ? std::nullopt : newest_;
  }
  void AwaitEnd() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_ended_));
  }

 private:
  absl::Mutex mu_;
  std::optional<wire::FollowResponse> newest_ ABSL_GUARDED_BY(mu_);
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
};

// A ps that has standbys.
class StandbysPs {
 public:
  explicit StandbysPs(Carrier carrier)
      : trust_(carrier == Carrier::kTlsLane ? KeysOf("mnist/ps/1") : nullptr),
        metrics_(registry_),
        server_({.task = "ps/1"}, Clock::Real(), metrics_),
        host_({.task = "ps/1", .incarnation = kHostIncarnation}) {
    if (carrier != Carrier::kNoLanes) {
      // The machine is reached at another address, where nobody listens.
      const std::string host =
          carrier == Carrier::kBlockedLane ? "127.0.0.2" : "127.0.0.1";
      const std::shared_ptr<const Trust> trust =
          carrier == Carrier::kBrokenLane ? KeysOf("mnist/ps/1") : trust_;
      lanes_ =
          PayloadHost::Start(host, 0, /*threads=*/1, INT64_MAX, trust).value();
    }
    service_ = std::make_unique<ParameterService>(
        server_, metrics_, ParameterService::kDefaultBufferBytes, lanes_.get(),
        ExchangeStream::Access(), &host_);
    rpc_server_ = RpcServer::Start("127.0.0.1:0", *service_,
                                   {.threads = 2, .trust = trust_})
                      .value();
  }
  ~StandbysPs() {
    service_->Drain();
    rpc_server_->Stop(absl::Seconds(1));
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", rpc_server_->port());
  }
  double lanes() const { return metrics_.lanes.value(); }
  StandbyHost& host() { return host_; }

 private:
  const std::shared_ptr<const Trust> trust_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  ParameterServer server_;
  StandbyHost host_;
  std::unique_ptr<PayloadHost> lanes_;
  std::unique_ptr<ParameterService> service_;
  std::unique_ptr<RpcServer> rpc_server_;
};

// A ps whose shard has a standby, without a chief.
class PrimaryPs {
 public:
  PrimaryPs(StandbysPs& standbys, std::shared_ptr<const Trust> trust)
      : client_(StandbyClient::Create(std::move(trust))),
        metrics_(registry_),
        server_({.task = "ps/0",
                 .incarnation = kIncarnation,
                 .take_standby = [&standbys](const wire::LoadRequest& order)
                     -> absl::StatusOr<ShardState> {
                   return standbys.host().Take(TakeRequest(order));
                 },
                 .on_loaded =
                     [this](const std::shared_ptr<ParameterShard>& shard,
                            const wire::LoadRequest& order, bool) {
                       shard_ = shard;
                       order_ = order;
                     }},
                clock_, metrics_) {
    place_.set_address(standbys.address());
    place_.set_ps_incarnation(PublicNumber(kHostIncarnation));
    place_.set_task("ps/1");
  }

  absl::Status Load(uint64_t standby) {
    wire::LoadRequest order = AdamOrder();
    order.mutable_standby()->set_number(standby);
    RETURN_IF_ERROR(server_.Load(order).status());
    shard_->feed()->SetRule(StandbyFeed::Rule::kAlone);
    return absl::OkStatus();
  }

  FollowMessage Header() const {
    FollowMessage message;
    wire::FollowHeader& header = *message.request.mutable_header();
    header.set_run_id(order_.run_id());
    header.set_layout(order_.order().layout());
    header.set_shard(order_.shard());
    header.set_num_shards(order_.num_shards());
    header.set_place_epoch(1);
    header.set_ps_incarnation(PublicNumber(kHostIncarnation));
    *header.mutable_load() = order_;
    header.mutable_load()->clear_order();
    header.mutable_load()->mutable_standby()->set_number(
        StandbyTicket(order_.shard(), order_.num_shards(), kHostIncarnation));
    return message;
  }
  // The messages that make a standby.
  std::vector<FollowMessage> State() {
    std::vector<FollowMessage> messages = {Header()};
    const auto snapshot =
        shard_->TakeSnapshotForStandby(clock_, [] { return false; });
    EXPECT_OK(snapshot);
    const auto state = ShardState::Write(*snapshot, order_.shard(),
                                         order_.num_shards(), 1 << 20);
    EXPECT_OK(state);
    EXPECT_OK(state->ForEachPiece([&](absl::string_view piece) {
      messages.emplace_back().request.set_state(std::string(piece));
      return absl::OkStatus();
    }));
    messages.emplace_back().request.set_state_end(true);
    return messages;
  }

  // Makes the standby; returns its number.
  uint64_t Follow() {
    answers_ = std::make_unique<Answers>();
    call_ = client_->Follow(place_, *answers_);
    EXPECT_TRUE(call_->Write(State()));
    const auto first = answers_->AwaitHeld(0);
    EXPECT_TRUE(first.has_value());
    return first ? first->number() : 0;
  }
  // A push as a lane brings it, whose message is gone when it was applied.
  void Push(uint64_t sequence, float gradient, int64_t elements) {
    const std::string bytes = Floats(elements, gradient);
    wire::RequestHeader header;
    const grpc::ByteBuffer sent =
        EncodeFrame(PushRequest(sequence, kWorker, elements),
                    {{bytes.data(), bytes.size(), nullptr}});
    absl::StatusOr<ReceivedFrame> frame =
        ReceivedFrame::Parse(BufferOf(BytesOf(sent)), 1, &header);
    ASSERT_OK(frame);
    const auto message = ReceivedMessage::Create(header, frame->TakePayloads());
    ASSERT_OK(message);
    server_.Execute(
        *message, 0,
        [](const absl::StatusOr<OperationResult>& result) {
          EXPECT_OK(result);
        },
        &*frame);
  }
  // Sends what has been pushed; returns how many records are held then.
  int64_t Send() {
    StandbyFeed& feed = *shard_->feed();
    const std::vector<FollowMessage> messages =
        feed.Take(64 << 20, absl::ZeroDuration());
    EXPECT_TRUE(call_->Write(messages));
    const auto answer = answers_->AwaitHeld(feed.appended());
    EXPECT_TRUE(answer.has_value());
    return answer ? answer->held() : 0;
  }
  std::vector<float> Values() {
    const wire::RequestHeader request = PullRequest();
    const auto message = ReceivedMessage::Create(request, {});
    std::vector<float> values;
    server_.Execute(*message, 0, [&](absl::StatusOr<OperationResult> result) {
      EXPECT_OK(result);
      if (result.ok()) values = FloatsOf(result->payloads);
    });
    return values;
  }

  // Sends a message that the standby refuses; returns why the call has ended.
  absl::Status SendLast(const FollowMessage& message) {
    call_->Write(absl::MakeConstSpan(&message, 1));
    answers_->AwaitEnd();
    return call_->Finish();
  }
  absl::Status Cancel() {
    call_->Cancel();
    answers_->AwaitEnd();
    EXPECT_FALSE(call_->Write({FollowMessage()}));
    return call_->Finish();
  }
  // Waits for the end that the other side makes.
  absl::Status AwaitEnd() {
    answers_->AwaitEnd();
    return call_->Finish();
  }

  StandbyCall& call() { return *call_; }
  const wire::StandbyPlace& place() const { return place_; }
  StandbyFeed& feed() { return *shard_->feed(); }

 private:
  static wire::TakeStandbyRequest TakeRequest(const wire::LoadRequest& order) {
    wire::TakeStandbyRequest request;
    request.set_run_id(order.run_id());
    request.set_layout(order.order().layout());
    request.set_shard(order.shard());
    request.set_num_shards(order.num_shards());
    request.set_number(order.standby().number());
    request.set_ps_incarnation(PublicNumber(kHostIncarnation));
    request.set_place_epoch(2);
    return request;
  }

  const std::unique_ptr<StandbyClient> client_;
  SimulatedClock clock_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  std::shared_ptr<ParameterShard> shard_;
  wire::LoadRequest order_;
  ParameterServer server_;
  wire::StandbyPlace place_;
  std::unique_ptr<Answers> answers_;
  std::unique_ptr<StandbyCall> call_;
};

class StandbyCarrierTest : public testing::TestWithParam<Carrier> {
 protected:
  StandbyCarrierTest()
      : standbys_(GetParam()),
        trust_(GetParam() == Carrier::kTlsLane ? KeysOf("mnist/ps/0")
                                               : nullptr),
        primary_(standbys_, trust_) {
    EXPECT_OK(primary_.Load(0));
  }
  bool HasLane() const {
    return GetParam() == Carrier::kLane || GetParam() == Carrier::kTlsLane;
  }

  StandbysPs standbys_;
  const std::shared_ptr<const Trust> trust_;
  PrimaryPs primary_;
};

std::string NameOfCarrier(const testing::TestParamInfo<Carrier>& info) {
  constexpr const char* kNames[] = {"Lane", "TlsLane", "NoLanes",
                                    "BlockedLane"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Carriers, StandbyCarrierTest,
                         testing::Values(Carrier::kLane, Carrier::kTlsLane,
                                         Carrier::kNoLanes,
                                         Carrier::kBlockedLane),
                         NameOfCarrier);

TEST_P(StandbyCarrierTest, TheStandbyHasWhatThePrimaryHas) {
  primary_.Push(1, .5, kElements);
  const uint64_t number = primary_.Follow();
  EXPECT_EQ(standbys_.lanes(), HasLane() ? 1 : 0);
  for (uint64_t sequence = 2; sequence < 40; ++sequence) {
    // Large ones stay in their messages' memory, small ones are copied.
    primary_.Push(sequence, .01f * static_cast<float>(sequence),
                  sequence % 3 == 0 ? kChunk : kElements);
    if (sequence % 5 != 0) continue;
    EXPECT_EQ(primary_.Send(), static_cast<int64_t>(sequence) - 1);
  }
  EXPECT_EQ(primary_.Send(), 38);
  PrimaryPs successor(standbys_, trust_);
  ASSERT_OK(successor.Load(number));
  EXPECT_EQ(successor.Values(), primary_.Values());
  // The standby's ps has ended the stream.
  EXPECT_THAT(primary_.AwaitEnd(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(StandbyCarrierTest, APrimaryMayEndItAndBeginAnew) {
  const uint64_t first = primary_.Follow();
  primary_.Push(1, 1, kElements);
  EXPECT_EQ(primary_.Send(), 1);
  EXPECT_THAT(primary_.Cancel(), Not(IsOk()));
  primary_.feed().End();
  primary_.Push(2, 1, kElements);
  EXPECT_NE(primary_.Follow(), first);
  primary_.Push(3, 1, kElements);
  EXPECT_EQ(primary_.Send(), 1);
}

TEST_P(StandbyCarrierTest, WhatCantBeTakenEndsTheStreamWithTheReason) {
  FollowMessage no_push;
  no_push.records.push_back({.head = "no push", .tensors = {}});
  primary_.Follow();
  EXPECT_THAT(primary_.SendLast(no_push),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is no push")));
  primary_.feed().End();
  primary_.Follow();
  FollowMessage settings;
  settings.request.mutable_header()->mutable_load()->set_run_id("other");
  EXPECT_THAT(primary_.SendLast(settings), Not(IsOk()));
  // The ps takes streams as before.
  primary_.feed().End();
  primary_.Follow();
  primary_.Push(1, 1, kElements);
  EXPECT_EQ(primary_.Send(), 1);
}

TEST_P(StandbyCarrierTest, NobodyWithoutTheTicketMakesAStandby) {
  Answers answers;
  const auto client = StandbyClient::Create(trust_);
  const auto call = client->Follow(primary_.place(), answers);
  FollowMessage header = primary_.Header();
  header.request.mutable_header()
      ->mutable_load()
      ->mutable_standby()
      ->set_number(1);
  call->Write(absl::MakeConstSpan(&header, 1));
  answers.AwaitEnd();
  EXPECT_THAT(call->Finish(), StatusIs(absl::StatusCode::kPermissionDenied,
                                       HasSubstr("only the ps whose standby")));
}

TEST_P(StandbyCarrierTest, ACallThatWasNotBegunEnds) {
  Answers answers;
  const auto client = StandbyClient::Create(trust_);
  client->Follow(primary_.place(), answers).reset();
  const auto call = client->Follow(primary_.place(), answers);
  call->Cancel();
  EXPECT_FALSE(call->Write({primary_.Header()}));
  EXPECT_THAT(call->Finish(), Not(IsOk()));
}

TEST(StandbyLaneTest, LanesThatBreakAtOnceAreNotTriedForEver) {
  StandbysPs standbys(Carrier::kBrokenLane);
  PrimaryPs primary(standbys, nullptr);
  ASSERT_OK(primary.Load(0));
  const auto client = StandbyClient::Create(nullptr);
  for (int round = 0; round < 2; ++round) {
    for (int stream = 0; stream < BrokenLanes::kMaxBroken; ++stream) {
      Answers answers;
      const auto call = client->Follow(primary.place(), answers);
      while (call->Write({primary.Header()})) {
      }
      EXPECT_THAT(call->Finish(), StatusIs(absl::StatusCode::kUnavailable));
    }
    Answers answers;
    const auto call = client->Follow(primary.place(), answers);
    EXPECT_TRUE(call->Write(primary.State()));
    EXPECT_TRUE(answers.AwaitHeld(0).has_value());
    call->Cancel();
    EXPECT_THAT(call->Finish(), Not(IsOk()));
    primary.feed().End();
  }
}

// What a primary never sends on a lane.
class HostilePrimaryTest : public testing::Test {
 protected:
  HostilePrimaryTest()
      : standbys_(Carrier::kLane), primary_(standbys_, nullptr) {
    EXPECT_OK(primary_.Load(0));
  }

  // Makes a standby on a lane, sends `last`, and returns how the call ends.
  absl::Status EndOf(const grpc::ByteBuffer& last) {
    const auto stub =
        wire::ParameterService::NewStub(MakeTensorChannel(standbys_.address()));
    grpc::ClientContext context;
    context.AddMetadata(kPayloadLaneKey, kPayloadLaneRequest);
    const auto stream = stub->Follow(&context);
    stream->WaitForInitialMetadata();
    const auto answer =
        context.GetServerInitialMetadata().find(kPayloadLaneKey);
    const auto offer = PayloadOffer::Parse(
        absl::string_view(answer->second.data(), answer->second.size()));
    EXPECT_OK(offer);
    SocketLoop loop;
    Taken connected;
    std::shared_ptr<PayloadConnection> connection;
    loop.Post([&] {
      connection = PayloadConnection::Start(
          context.peer(), *offer, loop, [&](absl::StatusOr<Descriptor> socket) {
            connected.Set(std::move(socket));
          });
    });
    EXPECT_OK(connected.Get());
    LaneEnd lane(loop);
    lane.Open(*std::move(connected.Get()));
    for (const FollowMessage& message : primary_.State()) {
      EXPECT_OK(lane.Write(EncodeFollow(message)));
    }
    EXPECT_OK(lane.Read());
    primary_.feed().End();
    EXPECT_OK(lane.Write(last));
    EXPECT_THAT(lane.Read(), Not(IsOk()));
    return FromGrpcStatus(stream->Finish(), "ps/1");
  }
  // The bytes of a message with one record.
  std::string RecordBytes() {
    primary_.State();
    primary_.Push(1, 1, kElements);
    const auto messages = primary_.feed().Take(1 << 20, absl::ZeroDuration());
    primary_.feed().End();
    return BytesOf(EncodeFollow(messages.at(0)));
  }

  StandbysPs standbys_;
  PrimaryPs primary_;
};

TEST_F(HostilePrimaryTest, BytesThatAreNoFrameEndTheStream) {
  EXPECT_THAT(EndOf(BufferOf("no frame")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(HostilePrimaryTest, ADamagedHeadIsNotAnotherPush) {
  const std::string whole = RecordBytes();
  // Behind the tag and the length of the header.
  for (const size_t at : {4, 8, 20, 40}) {
    std::string damaged = whole;
    damaged[at] ^= 0x10;
    EXPECT_THAT(EndOf(BufferOf(damaged)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AnyOf(HasSubstr("checksum"), HasSubstr("at byte"))))
        << at;
  }
}

TEST_F(HostilePrimaryTest, TensorsThatNoRecordHasEndTheStream) {
  FollowMessage message;
  message.records.push_back({.head = "", .tensors = {}});
  const std::string tensor(100, 'x');
  message.records[0].tensors.push_back({tensor.data(), tensor.size(), nullptr});
  EXPECT_THAT(EndOf(EncodeFollow(message)),
              StatusIs(absl::StatusCode::kDataLoss));
  wire::FollowRequest none;
  EXPECT_THAT(EndOf(EncodeFrame(none, {{tensor.data(), tensor.size(), {}}})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("too many")));
}

TEST_F(HostilePrimaryTest, ARecordThatIsCutShortEndsTheStream) {
  const std::string whole = RecordBytes();
  for (const size_t size : {whole.size() / 2, whole.size() - 1}) {
    EXPECT_THAT(EndOf(BufferOf(whole.substr(0, size))), Not(IsOk()));
  }
}

}  // namespace
}  // namespace parasol::parameter_server_testing
