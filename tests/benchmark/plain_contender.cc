#include "tests/benchmark/plain_contender.h"

#include <cstring>
#include <deque>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "tests/benchmark/plain.grpc.pb.h"
#include "tests/benchmark/plain_tables.h"

namespace parasol {
namespace {

constexpr int kPlainMessageBytes = 64 << 20;

class PlainServer : public benchmark::PlainService::Service {
 public:
  explicit PlainServer(const Contents& contents)
      : variables_(contents), locks_(contents.variables) {}

 private:
  grpc::Status Exchange(grpc::ServerContext*,
                        const benchmark::PlainRequest* request,
                        benchmark::PlainResponse* response) override {
    const std::string& gradient = request->gradient();
    const size_t variable = request->variable();
    absl::MutexLock lock(&locks_[variable]);
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
  std::vector<absl::Mutex> locks_;
};

class PlainSession : public Session {
 public:
  explicit PlainSession(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kPlainMessageBytes);
    stub_ = benchmark::PlainService::NewStub(grpc::CreateCustomChannel(
        absl::StrCat(ServerHost(), ":", port),
        grpc::InsecureChannelCredentials(), arguments));
  }

  ~PlainSession() override {
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void Start(const VariableExchange& exchange) override {
    benchmark::PlainRequest request;
    request.set_variable(exchange.variable);
    request.set_gradient(exchange.gradient.data(),
                         exchange.gradient.size() * sizeof(float));
    request.set_pull(!exchange.values.empty());
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.values = exchange.values;
    call.reader = stub_->AsyncExchange(&call.context, request, &queue_);
    call.reader->Finish(&call.response, &call.status, &call);
  }

  void StartRows(const RowExchange&) override {
    LOG(FATAL) << "no sparse table";
  }

  void Finish() override {
    const std::unique_ptr<Call> call = std::move(calls_.front());
    calls_.pop_front();
    while (!call->done) {
      void* tag;
      bool ok;
      CHECK(queue_.Next(&tag, &ok));
      static_cast<Call*>(tag)->done = true;
    }
    CHECK(call->status.ok()) << call->status.error_message();
    const std::string& values = call->response.values();
    CHECK_EQ(values.size(), call->values.size() * sizeof(float));
    std::memcpy(call->values.data(), values.data(), values.size());
  }

 private:
  struct Call {
    absl::Span<float> values;
    grpc::ClientContext context;
    benchmark::PlainResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<benchmark::PlainResponse>>
        reader;
    bool done = false;
  };

  std::unique_ptr<benchmark::PlainService::Stub> stub_;
  grpc::CompletionQueue queue_;
  std::deque<std::unique_ptr<Call>> calls_;
};

}  // namespace

Contender MakePlainContender(const Contents& contents) {
  Contender contender = {
      .name = "plain gRPC",
      .server = std::make_unique<ServerProcess>("plain", contents)};
  contender.sessions.push_back(
      std::make_unique<PlainSession>(contender.server->port()));
  return contender;
}

void ServePlain(const Contents& contents) {
  PlainServer service(contents);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kPlainMessageBytes);
  builder.AddListeningPort(absl::StrCat(ServerHost(), ":0"),
                           grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  CHECK(server != nullptr);
  ServeUntilKilled(port);
}

}  // namespace parasol
