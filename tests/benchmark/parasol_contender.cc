#include "tests/benchmark/parasol_contender.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cluster/rpc/keep_memory.h"
#include "cluster/rpc/server.h"
#include "ps/parameter_server.h"
#include "ps/parameter_service.h"
#include "ps/ps_metrics.h"
#include "tests/benchmark/server_process.h"

namespace parasol {
namespace {

constexpr char kRun[] = "benchmark";

std::string VariableName(size_t variable) {
  return absl::StrCat("v", variable);
}

// All variables on one shard.
wire::Shard OneShard(const std::string& address) {
  wire::Shard shard;
  shard.set_address(address);
  for (size_t i = 0; i < kVariableBytes.size(); ++i) {
    const int64_t elements = kVariableBytes[i] / sizeof(float);
    wire::PartSpec& part = *shard.add_part();
    part.set_id(i);
    part.set_variable(VariableName(i));
    part.add_variable_shape(elements);
    part.set_elements(elements);
    part.mutable_initializer()->mutable_zeros();
  }
  return shard;
}

class ParasolContender : public Contender {
 public:
  explicit ParasolContender(const ParameterClient::Options& options)
      : process_("parasol") {
    wire::GetPlacementResponse placement;
    placement.set_run_id(kRun);
    *placement.add_shard() = OneShard(process_.address());
    std::vector<std::string> variables;
    for (size_t i = 0; i < kVariableBytes.size(); ++i) {
      variables.push_back(VariableName(i));
    }
    auto client = ParameterClient::Create(placement, variables, /*tables=*/{},
                                          options, Clock::Real(), metrics_);
    CHECK(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  std::string name() const override { return "Parasol"; }

  void Push(size_t variable, absl::Span<const float> gradient) override {
    CheckOk(client_->Push({{variable, gradient}})->Wait());
  }
  void Pull(size_t variable, absl::Span<float> values) override {
    CheckOk(client_->Pull({{variable, values}})->Wait());
  }
  void PushPull(size_t variable, absl::Span<const float> gradient,
                absl::Span<float> values) override {
    const auto push = client_->Push({{variable, gradient}});
    CheckOk(client_->Pull({{variable, values}})->Wait());
    CheckOk(push->Wait());
  }

  size_t server_rss_bytes() const override { return process_.rss_bytes(); }

 private:
  static void CheckOk(const absl::Status& status) {
    CHECK(status.ok()) << status;
  }

  ServerProcess process_;
  MetricsRegistry metrics_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace

std::unique_ptr<Contender> MakeParasolContender(
    const ParameterClient::Options& options) {
  return std::make_unique<ParasolContender>(options);
}

void ServeParasol() {
  KeepFreedMemory();
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  ParameterServer server({.task = "ps/0"}, Clock::Real(), metrics);
  wire::LoadRequest load;
  load.set_run_id(kRun);
  load.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);
  *load.mutable_part() = OneShard("").part();
  load.set_num_shards(1);
  const auto loaded = server.Load(load);
  CHECK(loaded.ok()) << loaded.status();
  ParameterService service(server, metrics);
  const auto rpc_server = RpcServer::Start("127.0.0.1:0", {&service});
  CHECK(rpc_server.ok()) << rpc_server.status();
  ServeUntilKilled((*rpc_server)->port());
}

}  // namespace parasol
