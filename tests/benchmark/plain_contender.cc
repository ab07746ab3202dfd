#include "tests/benchmark/plain_contender.h"

#include <cstring>

#include "base/log.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "tests/benchmark/plain.grpc.pb.h"
#include "tests/benchmark/server_process.h"

namespace parasol {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;

class PlainServer : public benchmark::PlainService::Service {
  grpc::Status Exchange(grpc::ServerContext*,
                        const benchmark::PlainRequest* request,
                        benchmark::PlainResponse* response) override {
    const std::string& gradient = request->gradient();
    const size_t variable = request->variable();
    if (!gradient.empty()) {
      variables_.Apply(variable, 0, gradient.size() / sizeof(float),
                       gradient.data());
    }
    if (request->pull()) {
      const absl::Span<float> values = variables_.values(variable);
      response->set_values(values.data(), values.size() * sizeof(float));
    }
    return grpc::Status::OK;
  }

  PlainVariables variables_;
};

class PlainContender : public Contender {
 public:
  PlainContender() : process_("plain") {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    stub_ = benchmark::PlainService::NewStub(grpc::CreateCustomChannel(
        process_.address(), grpc::InsecureChannelCredentials(), arguments));
  }

  std::string name() const override { return "plain gRPC"; }

  void Push(size_t variable, absl::Span<const float> gradient) override {
    PushPull(variable, gradient, {});
  }
  void Pull(size_t variable, absl::Span<float> values) override {
    PushPull(variable, {}, values);
  }

  void PushPull(size_t variable, absl::Span<const float> gradient,
                absl::Span<float> values) override {
    benchmark::PlainRequest request;
    request.set_variable(variable);
    request.set_gradient(gradient.data(), gradient.size() * sizeof(float));
    request.set_pull(!values.empty());
    benchmark::PlainResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->Exchange(&context, request, &response);
    CHECK(status.ok()) << status.error_message();
    CHECK_EQ(response.values().size(), values.size() * sizeof(float));
    if (values.empty()) return;
    std::memcpy(values.data(), response.values().data(),
                response.values().size());
  }

  size_t server_rss_bytes() const override { return process_.rss_bytes(); }

 private:
  ServerProcess process_;
  std::unique_ptr<benchmark::PlainService::Stub> stub_;
};

}  // namespace

std::unique_ptr<Contender> MakePlainContender() {
  return std::make_unique<PlainContender>();
}

void ServePlain() {
  PlainServer service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  CHECK(server != nullptr);
  ServeUntilKilled(port);
}

}  // namespace parasol
