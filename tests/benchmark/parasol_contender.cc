#include "tests/benchmark/parasol_contender.h"

#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/work_helpers.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/keep_memory.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/certificate_issuer.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/memory_file.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {
namespace {

constexpr char kRun[] = "benchmark";
constexpr char kTable[] = "rows";

std::string VariableName(size_t variable) {
  return absl::StrCat("v", variable);
}

// Everything on one shard.
wire::Shard OneShard(const Contents& contents) {
  wire::Shard shard;
  for (size_t i = 0; i < contents.variables; ++i) {
    wire::PartSpec& part = *shard.add_part();
    part.set_id(i);
    part.set_variable(VariableName(i));
    part.add_variable_shape(contents.elements);
    part.set_elements(contents.elements);
    part.mutable_initializer()->mutable_zeros();
  }
  if (contents.row_width > 0) {
    wire::TableSpec& table = *shard.add_table();
    table.set_name(kTable);
    table.set_width(contents.row_width);
    table.mutable_initializer()->mutable_random_uniform();
  }
  return shard;
}

std::unique_ptr<ParameterClient> MakeClient(
    int port, const Contents& contents, const ParameterClient::Options& options,
    MetricsRegistry& metrics) {
  wire::GetPlacementResponse placement;
  placement.set_run_id(kRun);
  wire::Shard& shard = *placement.add_shard();
  shard = OneShard(contents);
  shard.set_address(absl::StrCat(ServerHost(), ":", port));
  std::vector<std::string> variables;
  for (size_t i = 0; i < contents.variables; ++i) {
    variables.push_back(VariableName(i));
  }
  std::vector<std::string> tables;
  if (contents.row_width > 0) tables.push_back(kTable);
  auto client = ParameterClient::Create(placement, variables, tables, options,
                                        Clock::Real(), metrics);
  CHECK(client.ok()) << client.status();
  return *std::move(client);
}

class ParasolSession : public Session {
 public:
  ParasolSession(int port, const Contents& contents,
                 const ParameterClient::Options& options)
      : client_(MakeClient(port, contents, options, metrics_)) {}

  void Start(const VariableExchange& exchange) override {
    StartStep(absl::MakeConstSpan(&exchange, 1));
  }

  void StartStep(absl::Span<const VariableExchange> exchanges) override {
    ParameterClient::PushRequest push;
    ParameterClient::PullRequest pull;
    for (const VariableExchange& exchange : exchanges) {
      if (!exchange.gradient.empty()) {
        push.gradients.push_back({exchange.variable, exchange.gradient});
      }
      if (!exchange.values.empty()) {
        pull.targets.push_back({exchange.variable, exchange.values});
      }
    }
    Start(std::move(push), std::move(pull));
  }

  void StartRows(const RowExchange& exchange) override {
    ParameterClient::PushRequest push;
    ParameterClient::PullRequest pull;
    if (!exchange.gradients.empty()) {
      push.rows.push_back({.ids = exchange.ids, .values = exchange.gradients});
    }
    if (!exchange.values.empty()) {
      pull.rows.push_back({.ids = exchange.ids, .values = exchange.values});
    }
    Start(std::move(push), std::move(pull));
  }

  void Finish() override {
    Wait(pending_.front().push.get());
    Wait(pending_.front().pull.get());
    pending_.pop_front();
  }

 private:
  void Start(ParameterClient::PushRequest push,
             ParameterClient::PullRequest pull) {
    ParameterClient::PushAndPull& pendings = pending_.emplace_back();
    const bool pushes = !push.gradients.empty() || !push.rows.empty();
    const bool pulls = !pull.targets.empty() || !pull.rows.empty();
    if (pushes && pulls) {
      pendings = client_->PushPull(std::move(push), std::move(pull));
    } else if (pushes) {
      pendings.push = client_->Push(std::move(push));
    } else {
      pendings.pull = client_->Pull(std::move(pull));
    }
  }

  static void Wait(ParameterClient::Pending* pending) {
    if (pending == nullptr) return;
    const absl::Status status = pending->Wait();
    CHECK(status.ok()) << status;
  }

  MetricsRegistry metrics_;
  std::unique_ptr<ParameterClient> client_;
  std::deque<ParameterClient::PushAndPull> pending_;
};

}  // namespace

std::shared_ptr<const Trust> TrustOfBenchmark(PeerRole role) {
  const auto token = JobToken::Parse("the benchmark's processes");
  CHECK(token.ok()) << token.status();
  const KeyMaterial material = IssueByToken(*token, role, /*index=*/0);
  // As files, with which lanes are in TLS, too. They are read again.
  static MemoryFile certificate, key, authorities;
  static const auto trust = [&] {
    CHECK(certificate.Replace(material.certificates).ok());
    CHECK(key.Replace(material.private_key).ok());
    CHECK(authorities.Replace(material.authorities).ok());
    return Trust::OfFiles({certificate.path(), key.path(), authorities.path()},
                          Clock::Real());
  }();
  CHECK(trust.ok()) << trust.status();
  return *trust;
}

Contender MakeParasolContender(const std::string& name,
                               const Contents& contents,
                               const ParameterClient::Options& options) {
  Contender contender = {
      .name = name,
      .server = std::make_unique<ServerProcess>(
          options.trust == nullptr ? "parasol" : "parasol_tls", contents)};
  contender.sessions =
      ConnectParasol(contender.server->port(), contents, options);
  return contender;
}

std::string JournalDirectory(wire::LoadRequest::Journal journal) {
  return absl::StrCat(std::filesystem::temp_directory_path().string(),
                      "/parasol_benchmark/", static_cast<int>(journal));
}

Contender MakeJournalContender(const std::string& name,
                               const Contents& contents,
                               const ParameterClient::Options& options,
                               wire::LoadRequest::Journal journal) {
  std::filesystem::remove_all(JournalDirectory(journal));
  Contender contender = {
      .name = name,
      .server = std::make_unique<ServerProcess>(
          journal == wire::LoadRequest::ON_DISK ? "parasol_journal_on_disk"
                                                : "parasol_journal",
          contents)};
  contender.sessions =
      ConnectParasol(contender.server->port(), contents, options);
  return contender;
}

std::vector<std::unique_ptr<Session>> ConnectParasol(
    int port, const Contents& contents,
    const ParameterClient::Options& options) {
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::make_unique<ParasolSession>(port, contents, options));
  return sessions;
}

void ServeParasol(const Contents& contents, std::shared_ptr<const Trust> trust,
                  wire::LoadRequest::Journal journal) {
  KeepFreedMemory();
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  const std::string directory = JournalDirectory(journal);
  ParameterServer server({.task = "ps/0",
                          .helpers = std::make_shared<WorkHelpers>(
                              WorkHelpers::ThreadsForServer()),
                          .journal_directory = directory},
                         Clock::Real(), metrics);
  wire::LoadRequest load = LoadOf(contents);
  load.set_journal(journal);
  const auto loaded = server.Load(load);
  CHECK(loaded.ok()) << loaded.status();
  ServeLoaded(server, metrics, std::move(trust));
}

wire::LoadRequest LoadOf(const Contents& contents) {
  wire::LoadRequest load;
  load.set_run_id(kRun);
  *load.mutable_optimizer() = OptimizerOf(contents);
  const wire::Shard shard = OneShard(contents);
  *load.mutable_part() = shard.part();
  *load.mutable_table() = shard.table();
  load.set_num_shards(1);
  return load;
}

void ServeLoaded(ParameterServer& server, PsMetrics& metrics,
                 std::shared_ptr<const Trust> trust) {
  const auto lanes = PayloadHost::Start(ServerHost(), /*port=*/0,
                                        ParameterService::kDefaultThreads,
                                        /*receive_bytes=*/INT64_MAX, trust);
  CHECK(lanes.ok()) << lanes.status();
  ParameterService service(server, metrics,
                           ParameterService::kDefaultBufferBytes, lanes->get());
  const auto rpc_server =
      RpcServer::Start(absl::StrCat(ServerHost(), ":0"), service,
                       {.threads = ParameterService::kDefaultThreads,
                        .trust = std::move(trust)});
  CHECK(rpc_server.ok()) << rpc_server.status();
  ServeUntilKilled((*rpc_server)->port());
}

}  // namespace parasol
