// The ways of payloads between a worker and a ps: in gRPC, on a TCP connection
// of their own, through memory that both see. They bring the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/client/parameter_client.h"
#include "proto/job.pb.h"
#include "tests/cluster/cutting_relay.h"
#include "tests/cluster/lane_cluster.h"

namespace parasol {
namespace {

using testing::HasSubstr;

constexpr size_t kWidth = PsOnThisMachine::kWidth;
constexpr size_t kRows = 1000;
constexpr size_t kSmall = 300'000;
// More than a stream's blocks hold.
constexpr size_t kLarge = 20'000'000;

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
  bool has_certificates = false;
};
void PrintTo(const Carrier& carrier, std::ostream* out) {
  *out << carrier.name;
}

std::shared_ptr<const Trust> TrustOf(absl::string_view task) {
  const CertificateDirectory directory(
      absl::StrCat("carriers_", absl::StrReplaceAll(task, {{"/", "_"}})),
      "ours");
  directory.Issue(task);
  return Trust::OfFiles(directory.files(), Clock::Real()).value();
}

class CarriersTest : public testing::TestWithParam<Carrier> {
 protected:
  static PsOnThisMachine::Hosts Hosts() {
    if (!GetParam().has_certificates) return {};
    return {.trust = TrustOf("mnist/ps/0")};
  }
  static ParameterClient::Options Options() {
    ParameterClient::Options options;
    options.shared_memory = GetParam().shared_memory;
    options.tcp_lanes = GetParam().tcp_lanes;
    if (GetParam().has_certificates) {
      options.trust = TrustOf("mnist/worker/0");
    }
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, CarriersTest,
    testing::Values(Carrier{"Grpc", false, false},
                    Carrier{"Lanes", false, true},
                    Carrier{"GrpcInTls", false, false, true},
                    Carrier{"LanesInTls", false, true, true},
                    Carrier{"SharedMemory", true, false},
                    Carrier{"SharedMemoryAndLanes", true, true}),
    [](const auto& info) { return info.param.name; });

std::vector<float> ThroughGrpc(ParameterClient::Options options, int steps) {
  options.shared_memory = false;
  options.tcp_lanes = false;
  options.trust = nullptr;
  PsOnThisMachine ps(kSmall);
  WorkerOnThisMachine worker(ps, options);
  return Train(*worker, kSmall, steps);
}

TEST_P(CarriersTest, ValuesAndRowsAreThoseThatGrpcBrings) {
  PsOnThisMachine ps(kSmall, Hosts());
  WorkerOnThisMachine worker(ps, Options());
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
  PsOnThisMachine ps(kSmall, Hosts());
  WorkerOnThisMachine worker(ps, options);
  EXPECT_TRUE(Train(*worker, kSmall, /*steps=*/5) ==
              ThroughGrpc(options, /*steps=*/5));
}

// Also than all blocks of shared memory, and than a socket's buffers.
TEST_P(CarriersTest, LargeValuesAreWhole) {
  PsOnThisMachine ps(kLarge, Hosts());
  ParameterClient::Options options = Options();
  options.message_bytes = 8 << 20;
  WorkerOnThisMachine worker(ps, options);
  const std::vector<float> values = Train(*worker, kLarge, /*steps=*/3);
  std::vector<float> sum(kLarge);
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = GradientOf(kLarge, step);
    for (size_t i = 0; i < kLarge; ++i) sum[i] -= gradient[i];
  }
  EXPECT_TRUE(std::equal(sum.begin(), sum.end(), values.begin()));
}

TEST_P(CarriersTest, ACutStreamsPushesAreAppliedOnceOnTheNextOne) {
  PsOnThisMachine ps(kSmall, Hosts());
  WorkerOnThisMachine worker(ps, Options());
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
  PsOnThisMachine ps(kSmall, Hosts());
  {
    WorkerOnThisMachine worker(ps, Options());
    Train(*worker, kSmall, 2);
    worker->Stop();
  }
  ps.Reconnect();
  EXPECT_THAT(ps.Metrics(), HasSubstr(Streams(0)));
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(0)));
}

// A ps that was too slow to open a lane, or a port that was blocked for a time.
TEST(LanesTest, LanesThatCouldNotBeOpenedAreTriedAgain) {
  PsOnThisMachine ps(kSmall, {.lanes = "127.0.0.2"});
  WorkerOnThisMachine worker(
      ps, {.shared_memory = false, .lane_retry = absl::Milliseconds(1)});
  Train(*worker, kSmall, 3);
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(0)));
  const std::unique_ptr<CuttingRelay> relay =
      CuttingRelay::Start("127.0.0.1", "127.0.0.2", ps.lane_port(),
                          [](size_t) { return CuttingRelay::Plan(); });
  ASSERT_NE(relay, nullptr) << "port " << ps.lane_port() << " is in use";
  int steps = 3;
  while (!absl::StrContains(ps.Metrics(), Lanes(2)) && steps < 20'000) {
    Train(*worker, kSmall, 1);
    ++steps;
  }
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(2)));
}

TEST(LanesTest, LanesGoOnWithARenewedCertificate) {
  const CertificateDirectory directory("renewed", "ours");
  directory.Issue("mnist/worker/0");
  const auto trust = Trust::OfFiles(directory.files(), Clock::Real()).value();
  PsOnThisMachine ps(kSmall, {.trust = TrustOf("mnist/ps/0")});
  WorkerOnThisMachine worker(ps, {.shared_memory = false, .trust = trust});
  Train(*worker, kSmall, 2);
  directory.Issue("mnist/worker/0");
  trust->Reread();
  ps.BreakLanes();
  Train(*worker, kSmall, 2);
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(2)));
}

// As behind a firewall, or a Service that has no such port.
TEST(LanesTest, APayloadPortThatCantBeReachedLeavesTensorsToGrpc) {
  PsOnThisMachine ps(kSmall, {.lanes = "127.0.0.2"});
  WorkerOnThisMachine worker(ps, {.shared_memory = false});
  EXPECT_TRUE(Train(*worker, kSmall, 3) == ThroughGrpc({}, 3));
  EXPECT_THAT(ps.Metrics(), HasSubstr(Lanes(0)));
}

}  // namespace
}  // namespace parasol
