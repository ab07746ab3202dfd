// A worker and a ps on one machine: what they exchange goes through memory that
// both see, and means what it means through a socket.

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
  explicit PsOnThisMachine(size_t elements)
      : elements_(elements),
        metrics_(registry_),
        server_({.task = "ps/0"}, Clock::Real(), metrics_) {
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

  std::string Metrics() const { return registry_.Text(); }

 private:
  void Listen(int port) {
    service_ = std::make_unique<ParameterService>(server_, metrics_);
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

// The line of /metrics that says that no bytes of `op`, "push" or "pull", went
// through shared memory.
std::string NothingOf(const std::string& op) {
  return absl::StrCat("parasol_ps_shared_memory_bytes_total{op=\"", op,
                      "\"} 0\n");
}

TEST(SharedMemoryTest, ValuesAndRowsAreThoseThatASocketBrings) {
  std::vector<std::vector<float>> values;
  for (const bool shared : {true, false}) {
    PsOnThisMachine ps(kSmall);
    Worker worker(ps, {.shared_memory = shared});
    values.push_back(Train(*worker, kSmall, /*steps=*/10));
    EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(shared ? 2 : 0)));
    for (const char* op : {"push", "pull"}) {
      EXPECT_EQ(absl::StrContains(ps.Metrics(), NothingOf(op)), !shared) << op;
    }
  }
  EXPECT_TRUE(values[0] == values[1]);
  EXPECT_NE(values[0].front(), 0);
}

TEST(SharedMemoryTest, OtherEncodingsTooAreThoseThatASocketBrings) {
  std::vector<std::vector<float>> values;
  for (const bool shared : {true, false}) {
    PsOnThisMachine ps(kSmall);
    Worker worker(ps, {.wire_encoding = job::BFLOAT16,
                       .push_share = .3,
                       .shared_memory = shared});
    values.push_back(Train(*worker, kSmall, /*steps=*/5));
  }
  EXPECT_TRUE(values[0] == values[1]);
}

TEST(SharedMemoryTest, ValuesLargerThanAllBlocksAreWhole) {
  PsOnThisMachine ps(kLarge);
  Worker worker(ps, {.message_bytes = 8 << 20});
  const std::vector<float> values = Train(*worker, kLarge, /*steps=*/3);
  std::vector<float> sum(kLarge);
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = GradientOf(kLarge, step);
    for (size_t i = 0; i < kLarge; ++i) sum[i] -= gradient[i];
  }
  EXPECT_TRUE(std::equal(sum.begin(), sum.end(), values.begin()));
}

TEST(SharedMemoryTest, ACutStreamsPushesAreAppliedOnceOnTheNextOne) {
  PsOnThisMachine ps(kSmall);
  Worker worker(ps, {});
  const std::vector<float> ones(kSmall, 1);
  std::vector<std::unique_ptr<ParameterClient::Pending>> pushes;
  constexpr int kPushes = 60;
  for (int i = 0; i < kPushes; ++i) {
    if (i % 20 == 10) ps.Reconnect();
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
  EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(2)));
}

TEST(SharedMemoryTest, AStreamThatEndsIsCountedNoMore) {
  PsOnThisMachine ps(kSmall);
  {
    Worker worker(ps, {});
    Train(*worker, kSmall, 2);
    worker->Stop();
  }
  ps.Reconnect();
  EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(0)));
}

}  // namespace
}  // namespace parasol
