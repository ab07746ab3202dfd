// The ways of payloads between a worker and a ps: in gRPC, on a TCP connection
// of their own, through memory that both see. They bring the same.

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/client/parameter_client.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {
namespace {

using testing::HasSubstr;

constexpr char kRun[] = "run";
constexpr size_t kWidth = 64;
constexpr size_t kRows = 1000;
constexpr size_t kSmall = 300'000;
// More than a stream's blocks hold.
constexpr size_t kLarge = 20'000'000;

class PsOnThisMachine {
 public:
  // Takes lanes at `lane_host`.
  explicit PsOnThisMachine(size_t elements,
                           const std::string& lane_host = "127.0.0.1")
      : elements_(elements),
        metrics_(registry_),
        server_({.task = "ps/0"}, Clock::Real(), metrics_),
        lanes_(PayloadHost::Start(lane_host, 0, /*threads=*/2).value()) {
    wire::LoadRequest load;
    load.set_run_id(kRun);
    load.set_num_shards(1);
    load.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    *load.mutable_part() = Placement().shard(0).part();
    *load.mutable_table() = Placement().shard(0).table();
    EXPECT_OK(server_.Load(load));
    Listen(0);
  }
  ~PsOnThisMachine() { rpc_server_->Stop(absl::ZeroDuration()); }

  wire::GetPlacementResponse Placement() const {
    wire::GetPlacementResponse placement;
    placement.set_run_id(kRun);
    wire::Shard& shard = *placement.add_shard();
    shard.set_address(absl::StrCat("127.0.0.1:", port_));
    wire::PartSpec& part = *shard.add_part();
    part.set_variable("w");
    part.add_variable_shape(elements_);
    part.set_elements(elements_);
    part.mutable_initializer()->mutable_zeros();
    wire::TableSpec& table = *shard.add_table();
    table.set_name("rows");
    table.set_width(kWidth);
    table.mutable_initializer()->mutable_zeros();
    return placement;
  }

  // Cuts all streams; the tables stay.
  void Reconnect() {
    rpc_server_->Stop(absl::ZeroDuration());
    rpc_server_.reset();
    Listen(port_);
  }

  // Breaks all lanes, whatever they are carrying. Both ends are in this
  // process.
  void BreakLanes() {
    for (int fd = 0; fd < 1024; ++fd) {
      sockaddr_in peer = {};
      socklen_t size = sizeof(peer);
      if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
          peer.sin_family == AF_INET &&
          ntohs(peer.sin_port) == lanes_->port()) {
        shutdown(fd, SHUT_RDWR);
      }
    }
  }

  std::string Metrics() const { return registry_.Text(); }

 private:
  void Listen(int port) {
    service_ = std::make_unique<ParameterService>(
        server_, metrics_, ParameterService::kDefaultBufferBytes, lanes_.get());
    auto started = RpcServer::Start(absl::StrCat("127.0.0.1:", port), *service_,
                                    {.threads = 2});
    ASSERT_OK(started);
    rpc_server_ = *std::move(started);
    port_ = rpc_server_->port();
  }

  const size_t elements_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  ParameterServer server_;
  const std::unique_ptr<PayloadHost> lanes_;
  std::unique_ptr<ParameterService> service_;
  std::unique_ptr<RpcServer> rpc_server_;
  int port_ = 0;
};

class Worker {
 public:
  Worker(const PsOnThisMachine& ps, ParameterClient::Options options) {
    options.worker_incarnation = 1;
    auto client = ParameterClient::Create(ps.Placement(), {"w"}, {"rows"},
                                          options, Clock::Real(), registry_);
    EXPECT_OK(client);
    client_ = *std::move(client);
  }

  ParameterClient& operator*() { return *client_; }
  ParameterClient* operator->() { return client_.get(); }

 private:
  MetricsRegistry registry_;
  std::unique_ptr<ParameterClient> client_;
};

std::vector<float> GradientOf(size_t elements, int step) {
  std::vector<float> gradient(elements);
  for (size_t i = 0; i < elements; ++i) {
    gradient[i] = static_cast<float>((i * 31 + step * 17) % 1000) / 8;
  }
  return gradient;
}

std::vector<uint64_t> Ids() {
  std::vector<uint64_t> ids(kRows);
  for (size_t i = 0; i < kRows; ++i) ids[i] = i * i;
  return ids;
}

std::vector<float> Train(ParameterClient& parameters, size_t elements,
                         int steps) {
  const std::vector<uint64_t> ids = Ids();
  std::vector<float> values(elements + kRows * kWidth);
  const absl::Span<float> variable = absl::MakeSpan(values).first(elements);
  const absl::Span<float> rows = absl::MakeSpan(values).subspan(elements);
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> gradient = GradientOf(elements, step);
    const std::vector<float> row_gradients = GradientOf(rows.size(), step + 1);
    const auto push = parameters.Push(
        {.gradients = {{0, gradient}}, .rows = {{0, ids, row_gradients}}});
    ParameterClient::PullRequest pull;
    pull.targets.push_back({0, variable});
    pull.rows.push_back({0, ids, rows});
    EXPECT_OK(parameters.Pull(std::move(pull))->Wait());
    EXPECT_OK(push->Wait());
  }
  return values;
}

std::string Streams(int shared) {
  return absl::StrCat("parasol_ps_shared_memory_streams ", shared, "\n");
}

std::string Lanes(int lanes) {
  return absl::StrCat("parasol_ps_payload_lanes ", lanes, "\n");
}

// The line of /metrics that says that no bytes of `op`, "push" or "pull", went
// through shared memory.
std::string NothingOf(const std::string& op) {
  return absl::StrCat("parasol_ps_shared_memory_bytes_total{op=\"", op,
                      "\"} 0\n");
}

struct Carrier {
  std::string name;
  bool shared_memory;
  bool tcp_lanes;
};
void PrintTo(const Carrier& carrier, std::ostream* out) {
  *out << carrier.name;
}

class CarriersTest : public testing::TestWithParam<Carrier> {
 protected:
  static ParameterClient::Options Options() {
    ParameterClient::Options options;
    options.shared_memory = GetParam().shared_memory;
    options.tcp_lanes = GetParam().tcp_lanes;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(All, CarriersTest,
                         testing::Values(Carrier{"Grpc", false, false},
                                         Carrier{"Lanes", false, true},
                                         Carrier{"SharedMemory", true, false},
                                         Carrier{"SharedMemoryAndLanes", true,
                                                 true}),
                         [](const auto& info) { return info.param.name; });

std::vector<float> ThroughGrpc(ParameterClient::Options options, int steps) {
  options.shared_memory = false;
  options.tcp_lanes = false;
  PsOnThisMachine ps(kSmall);
  Worker worker(ps, options);
  return Train(*worker, kSmall, steps);
}

TEST_P(CarriersTest, ValuesAndRowsAreThoseThatGrpcBrings) {
  PsOnThisMachine ps(kSmall);
  Worker worker(ps, Options());
  const std::vector<float> values = Train(*worker, kSmall, /*steps=*/10);
  EXPECT_TRUE(values == ThroughGrpc(Options(), /*steps=*/10));
  EXPECT_NE(values.front(), 0);
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(GetParam().tcp_lanes ? 2 : 0)));
  const bool is_shared = GetParam().shared_memory;
  EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(is_shared ? 2 : 0)));
  for (const char* op : {"push", "pull"}) {
    EXPECT_EQ(absl::StrContains(ps.Metrics(), NothingOf(op)), !is_shared) << op;
  }
}

TEST_P(CarriersTest, OtherEncodingsTooAreThoseThatGrpcBrings) {
  ParameterClient::Options options = Options();
  options.wire_encoding = job::BFLOAT16;
  options.push_share = .3;
  PsOnThisMachine ps(kSmall);
  Worker worker(ps, options);
  EXPECT_TRUE(Train(*worker, kSmall, /*steps=*/5) ==
              ThroughGrpc(options, /*steps=*/5));
}

// Also than all blocks of shared memory, and than a socket's buffers.
TEST_P(CarriersTest, LargeValuesAreWhole) {
  PsOnThisMachine ps(kLarge);
  ParameterClient::Options options = Options();
  options.message_bytes = 8 << 20;
  Worker worker(ps, options);
  const std::vector<float> values = Train(*worker, kLarge, /*steps=*/3);
  std::vector<float> sum(kLarge);
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = GradientOf(kLarge, step);
    for (size_t i = 0; i < kLarge; ++i) sum[i] -= gradient[i];
  }
  EXPECT_TRUE(std::equal(sum.begin(), sum.end(), values.begin()));
}

TEST_P(CarriersTest, ACutStreamsPushesAreAppliedOnceOnTheNextOne) {
  PsOnThisMachine ps(kSmall);
  Worker worker(ps, Options());
  const std::vector<float> ones(kSmall, 1);
  std::vector<std::unique_ptr<ParameterClient::Pending>> pushes;
  constexpr int kPushes = 120;
  for (int i = 0; i < kPushes; ++i) {
    if (i % 20 == 10) ps.Reconnect();
    if (i % 7 == 3) ps.BreakLanes();
    pushes.push_back(
        worker->Push(std::vector<ParameterClient::Gradient>{{0, ones}}));
  }
  for (const auto& push : pushes) EXPECT_OK(push->Wait());
  std::vector<float> values(kSmall);
  ASSERT_OK(worker
                ->Pull(std::vector<ParameterClient::Target>{
                    {0, absl::MakeSpan(values)}})
                ->Wait());
  EXPECT_THAT(values, testing::Each(-kPushes));
}

TEST_P(CarriersTest, AStreamThatEndsIsCountedNoMore) {
  PsOnThisMachine ps(kSmall);
  {
    Worker worker(ps, Options());
    Train(*worker, kSmall, 2);
    worker->Stop();
  }
  ps.Reconnect();
  EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(0)));
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(0)));
}

// As behind a firewall, or a Service that has no such port.
TEST(LanesTest, APayloadPortThatCantBeReachedLeavesTensorsToGrpc) {
  PsOnThisMachine ps(kSmall, /*lane_host=*/"127.0.0.2");
  Worker worker(ps, {.shared_memory = false});
  EXPECT_TRUE(Train(*worker, kSmall, 3) == ThroughGrpc({}, 3));
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(0)));
}

}  // namespace
}  // namespace parasol
