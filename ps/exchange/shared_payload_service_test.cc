// Clients that offer a ps memory which both see, or pretend to.

#include <memory>
#include <string>
#include <vector>

#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_payloads.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "ps/exchange/testing/parameter_service_fixture.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using SharedPayloadServiceTest = ParameterServiceTest;

// Offers memory with each call, and finds out whether the ps has opened it.
wire::ExchangeResponse AskOffering(wire::ParameterService::Stub& stub,
                                   const std::string& offer,
                                   const wire::ExchangeRequest& request,
                                   bool* accepted, grpc::Status* end) {
  grpc::ClientContext context;
  context.AddMetadata(kSharedMemoryKey, offer);
  const std::unique_ptr<Stream> stream = stub.Exchange(&context);
  wire::ExchangeResponse response;
  stream->Write(request);
  stream->Read(&response);
  stream->WritesDone();
  *end = stream->Finish();
  *accepted = context.GetServerInitialMetadata().count(kSharedMemoryKey) > 0;
  return response;
}

TEST_F(SharedPayloadServiceTest, APayloadInSharedMemoryIsAsOneInTheMessage) {
  const auto stub = NewStub();
  const auto memory = SharedPayloads::Create().value();
  wire::ExchangeRequest push = PushOf(1, 1, 2.5);
  const std::string gradient = push.payload(0);
  push.clear_payload();
  std::vector<PayloadRef> payloads = {
      {gradient.data(), gradient.size(), nullptr}};
  memory->Send(payloads, *push.mutable_header()->mutable_shared_payload());
  ASSERT_TRUE(payloads.empty());
  bool accepted = false;
  grpc::Status end;
  AskOffering(*stub, memory->offer(), push, &accepted, &end);
  EXPECT_TRUE(accepted);
  EXPECT_TRUE(end.ok()) << end.error_message();
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  EXPECT_EQ(BytesOf(Ask(*stream, PullOf(1))), Floats(kElements, -2.5));
  context.TryCancel();
}

// A worker that frees nothing gets everything nevertheless.
TEST_F(SharedPayloadServiceTest, WithoutFreeBlocksValuesGoThroughTheSocket) {
  const auto stub = NewStub();
  const auto memory = SharedPayloads::Create().value();
  grpc::ClientContext context;
  context.AddMetadata(kSharedMemoryKey, memory->offer());
  const std::unique_ptr<Stream> stream = stub->Exchange(&context);
  constexpr int kBlocksOfAPull = kVariableBytes / SharedPayloads::kBlockBytes;
  constexpr int kShared = SharedPayloads::kBlocks / kBlocksOfAPull;
  for (int i = 1; i <= kShared + 3; ++i) {
    const wire::ExchangeResponse response = Ask(*stream, PullOf(i));
    const int shared = i <= kShared ? kBlocksOfAPull : 0;
    EXPECT_EQ(response.header().shared_payload_size(), shared) << i;
    EXPECT_EQ(BytesOf(response).size(), shared > 0 ? 0 : kVariableBytes) << i;
  }
  context.TryCancel();
}

TEST_F(SharedPayloadServiceTest, ASharedPayloadThatCannotBeEndsTheStream) {
  const auto stub = NewStub();
  const auto memory = SharedPayloads::Create().value();
  wire::ExchangeRequest push = PushOf(1, 1, 1);
  push.clear_payload();
  wire::SharedPayload& claim = *push.mutable_header()->add_shared_payload();
  claim.set_bytes(kVariableBytes);
  for (int i = 0; i < 4; ++i) claim.add_block(i);  // none is filled
  bool accepted = false;
  grpc::Status end;
  AskOffering(*stub, memory->offer(), push, &accepted, &end);
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // A stream that has no such memory does so, too.
  AskOffering(*stub, "nobody's", push, &accepted, &end);
  EXPECT_FALSE(accepted);
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharedPayloadServiceTest, AnOfferThatIsNoneIsPassedOver) {
  const auto stub = NewStub();
  for (const char* offer : {"", "x", "a b c d", "another/machine 1 2 0123"}) {
    bool accepted = true;
    grpc::Status end;
    const wire::ExchangeResponse response =
        AskOffering(*stub, offer, PullOf(1), &accepted, &end);
    EXPECT_FALSE(accepted) << offer;
    EXPECT_TRUE(end.ok()) << end.error_message();
    EXPECT_EQ(response.header().result(0).code(), 0) << offer;
  }
}

}  // namespace
}  // namespace parasol
