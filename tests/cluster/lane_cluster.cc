#include "tests/cluster/lane_cluster.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

constexpr char kRun[] = "run";

}  // namespace

PsOnThisMachine::PsOnThisMachine(size_t elements, const Hosts& hosts)
    : elements_(elements),
      hosts_(hosts),
      metrics_(registry_),
      server_({.task = "ps/0"}, Clock::Real(), metrics_),
      lanes_(PayloadHost::Start(hosts.lanes, 0, /*threads=*/2, INT64_MAX,
                                hosts.trust)
                 .value()) {
  wire::LoadRequest load;
  load.set_run_id(kRun);
  load.set_num_shards(1);
  load.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  *load.mutable_part() = Placement().shard(0).part();
  *load.mutable_table() = Placement().shard(0).table();
  EXPECT_OK(server_.Load(load));
  Listen(0);
}

PsOnThisMachine::~PsOnThisMachine() { rpc_server_->Stop(absl::ZeroDuration()); }

wire::GetPlacementResponse PsOnThisMachine::Placement() const {
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

void PsOnThisMachine::Reconnect() {
  rpc_server_->Stop(absl::ZeroDuration());
  rpc_server_.reset();
  Listen(port_);
}

void PsOnThisMachine::BreakLanes() {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer = {};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == lanes_->port()) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

void PsOnThisMachine::Listen(int port) {
  service_ = std::make_unique<ParameterService>(
      server_, metrics_, ParameterService::kDefaultBufferBytes, lanes_.get());
  auto started =
      RpcServer::Start(absl::StrCat(hosts_.calls, ":", port), *service_,
                       {.threads = 2, .trust = hosts_.trust});
  ASSERT_OK(started);
  rpc_server_ = *std::move(started);
  port_ = rpc_server_->port();
}

WorkerOnThisMachine::WorkerOnThisMachine(const PsOnThisMachine& ps,
                                         ParameterClient::Options options) {
  options.worker_incarnation = 1;
  auto client = ParameterClient::Create(ps.Placement(), {"w"}, {"rows"},
                                        options, Clock::Real(), registry_);
  EXPECT_OK(client);
  client_ = *std::move(client);
}

}  // namespace parasol
