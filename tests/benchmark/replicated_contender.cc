// A ps whose shard has a standby in another process; its chief is a function.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/work_helpers.h"
#include "cluster/client/standby_client.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/keep_memory.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/standby/standby_host.h"
#include "ps/standby/standby_keeper.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/server_process.h"

namespace parasol {
namespace {

constexpr uint64_t kStandbysPs = 0x5b;

// Another journal than the one of a ps without a standby, which may live, too.
std::string ReplicatedJournal(wire::LoadRequest::Journal journal) {
  return absl::StrCat(JournalDirectory(journal), "_replicated");
}

// Answers as a chief does that keeps what it is told.
wire::HeartbeatResponse ChiefsAnswer(const wire::HeartbeatRequest& request,
                                     int port) {
  wire::HeartbeatResponse answer;
  const wire::StandbyPlace& reported = request.standby().place();
  answer.set_kept_standby(reported.task().empty() ? 0 : reported.number());
  wire::StandbyPlace& place = *answer.mutable_standby_host();
  place.set_address(absl::StrCat(ServerHost(), ":", port));
  place.set_ps_incarnation(PublicNumber(kStandbysPs));
  place.set_number(StandbyTicket(/*shard=*/0, /*num_shards=*/1, kStandbysPs));
  place.set_task("ps/1");
  return answer;
}

// Does everything twice.
class MirroredSession : public Session {
 public:
  MirroredSession(std::unique_ptr<Session> first,
                  std::unique_ptr<Session> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void Start(const VariableExchange& exchange) override {
    first_->Start(exchange);
    second_->Start(exchange);
  }
  void StartRows(const RowExchange& exchange) override {
    first_->StartRows(exchange);
    second_->StartRows(exchange);
  }
  void Finish() override {
    first_->Finish();
    second_->Finish();
  }

 private:
  const std::unique_ptr<Session> first_;
  const std::unique_ptr<Session> second_;
};

}  // namespace

Contender MakeMirroredContender(const std::string& name,
                                const Contents& contents,
                                const ParameterClient::Options& options) {
  Contender contender = {
      .name = name,
      .server = std::make_unique<ServerProcess>("parasol", contents),
      .twin = std::make_unique<ServerProcess>("parasol", contents)};
  auto sessions = ConnectParasol(contender.server->port(), contents, options);
  auto twins = ConnectParasol(contender.twin->port(), contents, options);
  for (size_t i = 0; i < sessions.size(); ++i) {
    contender.sessions.push_back(std::make_unique<MirroredSession>(
        std::move(sessions[i]), std::move(twins[i])));
  }
  return contender;
}

Contender MakeReplicatedContender(const std::string& name,
                                  const Contents& contents,
                                  const ParameterClient::Options& options,
                                  wire::LoadRequest::Journal journal) {
  std::filesystem::remove_all(ReplicatedJournal(journal));
  Contender contender = {
      .name = name,
      .server = std::make_unique<ServerProcess>(
          journal == wire::LoadRequest::NONE ? "parasol_replicated"
                                             : "parasol_replicated_journal",
          contents)};
  contender.sessions =
      ConnectParasol(contender.server->port(), contents, options);
  return contender;
}

void ServeStandby() {
  KeepFreedMemory();
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  const auto helpers =
      std::make_shared<WorkHelpers>(WorkHelpers::ThreadsForServer());
  ParameterServer server({.task = "ps/1", .helpers = helpers}, Clock::Real(),
                         metrics);
  StandbyHost standbys(
      {.task = "ps/1", .incarnation = kStandbysPs, .helpers = helpers});
  const auto lanes = PayloadHost::Start(ServerHost(), /*port=*/0,
                                        ParameterService::kDefaultThreads);
  CHECK(lanes.ok()) << lanes.status();
  ParameterService service(server, metrics,
                           ParameterService::kDefaultBufferBytes, lanes->get(),
                           /*access=*/{}, &standbys);
  const auto rpc_server =
      RpcServer::Start(absl::StrCat(ServerHost(), ":0"), service,
                       {.threads = ParameterService::kDefaultThreads});
  CHECK(rpc_server.ok()) << rpc_server.status();
  ServeUntilKilled((*rpc_server)->port());
}

void ServeReplicated(const Contents& contents,
                     wire::LoadRequest::Journal journal) {
  KeepFreedMemory();
  const ServerProcess standby("parasol_standby", contents);
  const std::unique_ptr<StandbyClient> client =
      StandbyClient::Create(/*trust=*/nullptr);
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  StandbyKeeper keeper(
      {.task = "ps/0",
       .heartbeat =
           [port = standby.port()](const wire::HeartbeatRequest& request) {
             return ChiefsAnswer(request, port);
           },
       .place_epoch = [] { return int64_t{1}; }},
      *client, Clock::Real(), metrics);
  keeper.Start();
  const auto on_loaded = [&keeper](const std::shared_ptr<ParameterShard>& shard,
                                   const wire::LoadRequest& order,
                                   bool is_new) {
    keeper.Loaded(shard, order, is_new);
  };
  ParameterServer server({.task = "ps/0",
                          .helpers = std::make_shared<WorkHelpers>(
                              WorkHelpers::ThreadsForServer()),
                          .journal_directory = ReplicatedJournal(journal),
                          .on_loaded = on_loaded},
                         Clock::Real(), metrics);
  wire::LoadRequest load = LoadOf(contents);
  load.mutable_standby();
  load.set_journal(journal);
  const auto loaded = server.Load(load);
  CHECK(loaded.ok()) << loaded.status();
  while (metrics.standby_in_sync.value() == 0) {
    Clock::Real().Pause(absl::Milliseconds(1));
  }
  ServeLoaded(server, metrics, /*trust=*/nullptr);
}

}  // namespace parasol
