#include "ps/exchange/parameter_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/rpc/status.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "ps/exchange/testing/parameter_service_fixture.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

TEST_F(ParameterServiceTest, PushesOnTwoStreamsAddUp) {
  constexpr int kPushes = 30;
  {
    std::vector<std::jthread> workers;
    for (const uint64_t worker : {1, 2}) {
      workers.emplace_back([this, worker] {
        const auto stub = NewStub();
        grpc::ClientContext context;
        const std::unique_ptr<Stream> stream = stub->Exchange(&context);
        for (int sequence = 1; sequence <= kPushes; ++sequence) {
          EXPECT_EQ(CodeOf(Ask(*stream, PushOf(worker, sequence, -1))), 0);
        }
        stream->WritesDone();
        EXPECT_OK(FromGrpcStatus(stream->Finish(), "ps/0"));
      });
    }
  }
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  EXPECT_EQ(BytesOf(Ask(*stream, PullOf(1))), Floats(kElements, 2 * kPushes));
}

TEST_F(ParameterServiceTest, AFailedRequestLeavesTheStreamUsable) {
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  wire::ExchangeRequest bad = PullOf(1);
  wire::RequestHeader& header = *bad.mutable_header();
  header.mutable_operation(0)->mutable_pull()->mutable_range(0)->set_part(9);
  EXPECT_EQ(CodeOf(Ask(*stream, bad)), kInvalid);
  wire::ExchangeRequest other_run = PullOf(1);
  other_run.mutable_header()->set_run_id("another");
  EXPECT_EQ(CodeOf(Ask(*stream, other_run)),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(BytesOf(Ask(*stream, PullOf(2))), Floats(kElements, 0));
}

// More responses than the stream's backlog and gRPC's window hold.
TEST_F(ParameterServiceTest, AWorkerThatReadsLateGetsAllResponsesInOrder) {
  constexpr int kPulls = 200;
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  for (int i = 0; i < kPulls; ++i) ASSERT_TRUE(stream->Write(PullOf(i)));
  for (int i = 0; i < kPulls; ++i) {
    wire::ExchangeResponse response;
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.header().result(0).id(), static_cast<uint64_t>(i));
  }
}

// A connection of its own with HTTP/2's small windows.
std::shared_ptr<grpc::Channel> NarrowChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

// A call of a worker that sends pulls and never reads.
struct DeafWorker {
  explicit DeafWorker(const std::string& address)
      : stub(wire::ParameterService::NewStub(NarrowChannel(address))),
        stream(stub->Exchange(&context)) {}
  ~DeafWorker() {
    context.TryCancel();
    stream->Finish();
  }

  std::unique_ptr<wire::ParameterService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<Stream> stream;
};

TEST_F(ParameterServiceTest, WorkersThatDoNotReadFillTheBuffersAndNoMore) {
  constexpr int kDeaf = 12;
  constexpr int kPulls = 30;
  const std::string address = absl::StrCat("127.0.0.1:", rpc_server_->port());
  std::vector<std::unique_ptr<DeafWorker>> deaf;
  for (int i = 0; i < kDeaf; ++i) {
    deaf.push_back(std::make_unique<DeafWorker>(address));
    for (int id = 0; id < kPulls; ++id) {
      ASSERT_TRUE(deaf.back()->stream->Write(PullOf(id)));
    }
  }
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  // Each may have one message more than its share, and this one too.
  constexpr int64_t kHeaderBytes = 64;
  const int64_t bound =
      kBufferBytes + (kDeaf + 1) * (kVariableBytes + kHeaderBytes);
  int64_t held = 0;
  for (int sequence = 1; held < kBufferBytes / 2 || sequence < 50; ++sequence) {
    ASSERT_LT(sequence, 5000) << held;
    ASSERT_EQ(CodeOf(Ask(*stream, PushOf(1, sequence, -1))), 0);
    ASSERT_EQ(BytesOf(Ask(*stream, PullOf(sequence))),
              Floats(kElements, sequence));
    held = static_cast<int64_t>(metrics_.buffered_bytes.value());
    ASSERT_LE(held, bound);
  }
  EXPECT_LT(bound, kDeaf * kPulls * kVariableBytes / 2);
}

TEST_F(ParameterServiceTest, ManySmallOperationsAreAnsweredTogether) {
  constexpr int kOperations = 500;
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  wire::ExchangeRequest request = PullOf(0);
  wire::RequestHeader& header = *request.mutable_header();
  header.mutable_operation(0)->mutable_pull()->mutable_range(0)->set_part(9);
  for (int id = 1; id < kOperations; ++id) {
    *header.add_operation() = header.operation(0);
    header.mutable_operation(id)->set_id(id);
  }
  ASSERT_TRUE(stream->Write(request));
  wire::ExchangeResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.header().result_size(), kOperations);
  for (int id = 0; id < kOperations; ++id) {
    EXPECT_EQ(response.header().result(id).id(), static_cast<uint64_t>(id));
  }
}

TEST_F(ParameterServiceTest, OneMessageMayAskForMoreThanTheBuffersHold) {
  constexpr int kOperations = 3 * kBufferBytes / kVariableBytes;
  const auto stub = NewStub();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  wire::ExchangeRequest request = PullOf(0);
  for (int id = 1; id < kOperations; ++id) request.MergeFrom(PullOf(id));
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  int results = 0;
  wire::ExchangeResponse response;
  while (stream->Read(&response)) results += response.header().result_size();
  EXPECT_EQ(results, kOperations);
  EXPECT_OK(FromGrpcStatus(stream->Finish(), "ps/0"));
}

// Three replicas, of which the first two count in a step.
class SynchronousServiceTest : public ParameterServiceTest {
 protected:
  void SetUp() override {
    wire::LoadRequest order;
    order.mutable_sync()->set_replicas_to_aggregate(2);
    order.mutable_sync()->set_total_replicas(3);
    wire::TableSpec& table = *order.add_table();
    table.set_name("t");
    table.set_width(1);
    table.mutable_initializer()->mutable_zeros();
    Load(order);
  }

  // A worker's stream, and another one's.
  grpc::ClientContext context_, other_context_;
  std::unique_ptr<wire::ParameterService::Stub> stub_ = NewStub(),
                                                other_stub_ = NewStub();
  std::unique_ptr<Stream> stream_ = stub_->Exchange(&context_),
                          other_ = other_stub_->Exchange(&other_context_);
};

// Returns the push of `replica` for step 0; its id is the replica's number.
wire::ExchangeRequest StepPushOf(int replica, float gradient) {
  wire::ExchangeRequest request =
      PushOf(/*worker=*/1 + replica, /*sequence=*/1, gradient);
  wire::Operation& push = *request.mutable_header()->mutable_operation(0);
  push.set_id(replica);
  push.mutable_push()->mutable_sync()->set_replica(replica);
  return request;
}

// Returns a pull of no rows.
wire::ExchangeRequest NoRowsOf(uint64_t id) {
  wire::ExchangeRequest request;
  request.mutable_header()->set_run_id("run");
  wire::Operation& operation = *request.mutable_header()->add_operation();
  operation.set_id(id);
  operation.mutable_row_pull();
  request.add_payload("");
  return request;
}

// Returns the pull of what step 0 has made.
wire::ExchangeRequest PullAfterStep(uint64_t id) {
  wire::ExchangeRequest request = PullOf(id);
  request.mutable_header()
      ->mutable_operation(0)
      ->mutable_pull()
      ->set_min_updates(1);
  return request;
}

TEST_F(SynchronousServiceTest, APushIsAnsweredWhenAnotherStreamCompletesIt) {
  ASSERT_TRUE(stream_->Write(StepPushOf(0, -1)));
  // What comes after it does not wait for it.
  EXPECT_EQ(BytesOf(Ask(*stream_, PullOf(7))), Floats(kElements, 0));
  EXPECT_EQ(CodeOf(Ask(*other_, StepPushOf(1, -3))), 0);
  wire::ExchangeResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  ASSERT_EQ(response.header().result_size(), 1);
  EXPECT_EQ(response.header().result(0).id(), 0u);
  EXPECT_EQ(response.header().result(0).code(), 0);
  EXPECT_EQ(BytesOf(Ask(*stream_, PullAfterStep(8))), Floats(kElements, 2));
}

TEST_F(SynchronousServiceTest, APushAfterItsStepIsStaleAndCountedAsThat) {
  ASSERT_TRUE(stream_->Write(StepPushOf(0, -1)));
  EXPECT_EQ(CodeOf(Ask(*other_, StepPushOf(1, -3))), 0);
  wire::ExchangeResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_TRUE(Ask(*other_, StepPushOf(2, -5)).header().result(0).stale());
  EXPECT_EQ(metrics_.stale_pushes_total.value(), 1);
  EXPECT_EQ(metrics_.pushes_total.value(), 2);
}

TEST_F(SynchronousServiceTest, AStreamThatIsAllWrittenEndsAfterWhatWaits) {
  ASSERT_TRUE(stream_->Write(PullAfterStep(5)));
  stream_->WritesDone();
  ASSERT_TRUE(other_->Write(StepPushOf(0, -1)));
  EXPECT_EQ(CodeOf(Ask(*other_, PullOf(9))), 0);
  ASSERT_TRUE(other_->Write(StepPushOf(1, -3)));
  wire::ExchangeResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.header().result(0).id(), 5u);
  EXPECT_EQ(BytesOf(response), Floats(kElements, 2));
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_OK(FromGrpcStatus(stream_->Finish(), "ps/0"));
}

// Their values are copies: in another encoding.
TEST_F(SynchronousServiceTest, PullsThatHaveWaitedAreReadAsTheirWorkerReads) {
  constexpr int kPulls = 6 * kBufferBytes / kVariableBytes;
  wire::ExchangeRequest request;
  for (int id = 0; id < kPulls; ++id) {
    request.MergeFrom(PullOf(id));
    wire::Pull& pull =
        *request.mutable_header()->mutable_operation(id)->mutable_pull();
    pull.set_encoding(wire::BFLOAT16);
    pull.set_min_updates(1);
  }
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_EQ(CodeOf(Ask(*stream_, PullOf(kPulls))), 0);
  ASSERT_TRUE(other_->Write(StepPushOf(0, -1)));
  ASSERT_TRUE(other_->Write(StepPushOf(1, -3)));
  wire::ExchangeResponse response;
  for (int pushes = 0; pushes < 2;) {
    ASSERT_TRUE(other_->Read(&response));
    pushes += response.header().result_size();
  }
  EXPECT_EQ(BytesOf(Ask(*other_, PullAfterStep(0))), Floats(kElements, 2));
  EXPECT_LE(metrics_.buffered_bytes.value(), kBufferBytes + 4 * kVariableBytes);
  std::string bytes;
  for (int pulls = 0; pulls < kPulls;) {
    ASSERT_TRUE(stream_->Read(&response));
    pulls += response.header().result_size();
    bytes = BytesOf(response);
    ASSERT_EQ(bytes.substr(0, kVariableBytes / 2), Halves(kElements, 2));
  }
}

TEST_F(SynchronousServiceTest, IdsThatAreKeptCountInTheBuffers) {
  constexpr int kIds = 100000;
  wire::ExchangeRequest pull;
  pull.mutable_header()->set_run_id("run");
  wire::RowPull& rows =
      *pull.mutable_header()->add_operation()->mutable_row_pull();
  rows.set_rows(kIds);
  rows.set_min_updates(1);
  pull.add_payload(std::string(kIds * sizeof(uint64_t), 'i'));
  ASSERT_TRUE(stream_->Write(pull));
  // Its message has been carried out when the next one is.
  EXPECT_EQ(CodeOf(Ask(*stream_, NoRowsOf(7))), 0);
  EXPECT_EQ(CodeOf(Ask(*stream_, NoRowsOf(8))), 0);
  EXPECT_GE(metrics_.buffered_bytes.value(), kIds * sizeof(uint64_t));
}

TEST_F(SynchronousServiceTest, WhatWaitsOutlivesItsStream) {
  ASSERT_TRUE(stream_->Write(StepPushOf(0, -1)));
  EXPECT_EQ(CodeOf(Ask(*stream_, PullOf(7))), 0);
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(CodeOf(Ask(*other_, StepPushOf(1, -3))), 0);
  EXPECT_EQ(BytesOf(Ask(*other_, PullAfterStep(8))), Floats(kElements, 2));
}

TEST_F(SynchronousServiceTest, DrainingDoesNotWaitForOthers) {
  ASSERT_TRUE(stream_->Write(StepPushOf(0, -1)));
  EXPECT_EQ(CodeOf(Ask(*stream_, PullOf(7))), 0);
  service_.Drain();
  EXPECT_THAT(FromGrpcStatus(stream_->Finish(), "ps/0"),
              StatusIs(absl::StatusCode::kUnavailable));
  rpc_server_->Stop(absl::Seconds(10));
  EXPECT_EQ(metrics_.streams.value(), 0);
}

TEST_F(ParameterServiceTest, BytesThatAreNoRequestEndTheStream) {
  grpc::GenericStub stub(NewChannel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/parasol.wire.ParameterService/Exchange", &queue);
  const auto wait = [&queue] {
    void* tag;
    bool ok;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(wait());
  const grpc::Slice slice("\x0a\x7f too short");
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(wait());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(metrics_.malformed_requests_total.value(), 1);
}

TEST_F(ParameterServiceTest, DrainingEndsOpenAndLaterStreams) {
  const auto stub = NewStub();
  grpc::ClientContext open, later;
  const std::unique_ptr<Stream> stream = stub->Exchange(&open);
  Ask(*stream, PushOf(1, 1, -1));
  service_.Drain();
  EXPECT_THAT(FromGrpcStatus(stream->Finish(), "ps/0"),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(FromGrpcStatus(stub->Exchange(&later)->Finish(), "ps/0"),
              StatusIs(absl::StatusCode::kUnavailable));
  rpc_server_->Stop(absl::Seconds(10));
  EXPECT_EQ(metrics_.streams.value(), 0);
}

TEST_F(ParameterServiceTest, ACancelledStreamIsForgotten) {
  {
    const auto stub = NewStub();
    grpc::ClientContext context;
    const std::unique_ptr<Stream> stream = stub->Exchange(&context);
    Ask(*stream, PushOf(1, 1, -1));
    for (int i = 0; i < 100; ++i) stream->Write(PullOf(i));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  rpc_server_->Stop(absl::Seconds(10));
  EXPECT_EQ(metrics_.streams.value(), 0);
}

TEST_F(ParameterServiceTest, UnaryErrorsKeepTheirCode) {
  const auto stub = NewStub();
  grpc::ClientContext context;
  wire::SnapshotRequest request;
  request.set_run_id("another");
  request.set_directory(testing::TempDir());
  request.set_file_name("shard.sst");
  wire::SnapshotResponse response;
  EXPECT_THAT(
      FromGrpcStatus(stub->Snapshot(&context, request, &response), "ps/0"),
      StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace parasol
