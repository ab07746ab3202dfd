#ifndef PARASOL_PS_TESTING_PARAMETER_SERVICE_FIXTURE_H_
#define PARASOL_PS_TESTING_PARAMETER_SERVICE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/server.h"
#include "cluster/rpc/status.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/parameter.grpc.pb.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/requests.h"

// A ps's service and clients of its protocol, for tests.
namespace parasol {

inline constexpr int64_t kElements = 4 * kChunkElements;
inline constexpr int64_t kVariableBytes = kElements * sizeof(float);
inline constexpr int64_t kBufferBytes = 16 << 20;
inline constexpr auto kInvalid =
    static_cast<int>(absl::StatusCode::kInvalidArgument);

using Stream =
    grpc::ClientReaderWriter<wire::ExchangeRequest, wire::ExchangeResponse>;

// A fixture whose clients do what any client of the protocol would: plain
// protobuf over gRPC.
class ParameterServiceTest : public testing::Test {
 protected:
  ParameterServiceTest()
      : metrics_(registry_),
        server_({.task = "ps/0"}, Clock::Real(), metrics_),
        service_(server_, metrics_, kBufferBytes),
        rpc_server_(RpcServer::Start("127.0.0.1:0", service_,
                                     {.threads = 2,
                                      .limits = {.transport_bytes = 256 << 20}})
                        .value()) {}

  void SetUp() override { Load({}); }

  void Load(wire::LoadRequest order) {
    order.set_run_id("run");
    order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    *order.add_part() = MakePart(0, "w", kElements, 0, kElements);
    order.set_num_shards(1);
    grpc::ClientContext context;
    wire::LoadResponse response;
    ASSERT_OK(
        FromGrpcStatus(NewStub()->Load(&context, order, &response), "ps/0"));
    ASSERT_EQ(response.value_bytes(), kElements * sizeof(float));
  }

  std::shared_ptr<grpc::Channel> NewChannel() {
    return MakeTensorChannel(absl::StrCat("127.0.0.1:", rpc_server_->port()));
  }
  std::unique_ptr<wire::ParameterService::Stub> NewStub() {
    return wire::ParameterService::NewStub(NewChannel());
  }

  MetricsRegistry registry_;
  PsMetrics metrics_;
  ParameterServer server_;
  ParameterService service_;
  std::unique_ptr<RpcServer> rpc_server_;
};

inline wire::ExchangeRequest PushOf(uint64_t worker, uint64_t sequence,
                                    float gradient) {
  wire::ExchangeRequest request;
  request.mutable_header()->set_run_id("run");
  request.mutable_header()->set_worker_incarnation(worker);
  wire::Operation& operation = *request.mutable_header()->add_operation();
  operation.set_id(sequence);
  *operation.mutable_push() = MakePush(sequence, {MakeRange(0, 0, kElements)});
  request.add_payload(Floats(kElements, gradient));
  return request;
}

inline wire::ExchangeRequest PullOf(uint64_t id) {
  wire::ExchangeRequest request;
  request.mutable_header()->set_run_id("run");
  wire::Operation& operation = *request.mutable_header()->add_operation();
  operation.set_id(id);
  *operation.mutable_pull() = MakePull({MakeRange(0, 0, kElements)});
  return request;
}

inline std::string BytesOf(const wire::ExchangeResponse& response) {
  std::string bytes;
  for (const std::string& payload : response.payload()) bytes += payload;
  return bytes;
}

// Returns the response to a request of one operation.
inline wire::ExchangeResponse Ask(Stream& stream,
                                  const wire::ExchangeRequest& request) {
  wire::ExchangeResponse response;
  EXPECT_TRUE(stream.Write(request));
  EXPECT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.header().result_size(), 1);
  EXPECT_EQ(response.header().result(0).id(),
            request.header().operation(0).id());
  return response;
}

inline int CodeOf(const wire::ExchangeResponse& response) {
  return response.header().result(0).code();
}

}  // namespace parasol

#endif  // PARASOL_PS_TESTING_PARAMETER_SERVICE_FIXTURE_H_
