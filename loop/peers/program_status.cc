#include "loop/peers/program_status.h"

#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/server.h"
#include "loop/peers/program_chief.h"
#include "worker/shown/lone_status.h"
#include "worker/shown/lone_status_service.h"
#include "worker/shown/peer_heartbeats.h"

namespace parasol {
namespace {

// The end of the process waits for one, and for as long again if the first
// process has gone and the channel connects anew.
constexpr absl::Duration kHeartbeatLimit = absl::Seconds(1);

class Server : public ProgramStatusServer {
 public:
  explicit Server(const ProgramStatus& status) : service_(status.shown()) {}

  absl::Status Listen(const std::string& address,
                      std::shared_ptr<const Trust> trust) {
    ASSIGN_OR_RETURN(server_,
                     RpcServer::Start(address, {&service_}, std::move(trust)));
    server_->SetServing(true);
    return absl::OkStatus();
  }

  int port() const override { return server_->port(); }

 private:
  LoneStatusService service_;
  std::unique_ptr<RpcServer> server_;  // ends before its service
};

}  // namespace

ProgramStatus::ProgramStatus(Clock& clock)
    : clock_(clock),
      shown_(std::make_unique<LoneStatus>(
          clock, "the program's processes have not met")) {}
ProgramStatus::~ProgramStatus() = default;

JobPage& ProgramStatus::page() { return shown_->page(); }

PageServer::Page ProgramStatus::PageAt(absl::string_view path) const {
  return shown_->PageAt(path);
}

void ProgramStatus::TellFirst(const wire::Task& task,
                              const std::string& address,
                              std::shared_ptr<const Trust> trust) {
  heartbeats_ = std::make_unique<PeerHeartbeats>(
      task,
      ChiefClient::Create(address, kHeartbeatLimit,
                          Callee::Chief(std::move(trust))),
      clock_);
}

void ProgramStatus::Show(const ProgramChief* chief) {
  if (chief == nullptr) return shown_->Ask({});
  shown_->Ask({.status = [chief] { return chief->Status(); },
               .part = [chief] { return chief->Part(); }});
}

wire::JobStatus ProgramStatus::Status() const { return shown_->Status(); }

absl::StatusOr<std::unique_ptr<ProgramStatusServer>> ProgramStatusServer::Start(
    const std::string& address, const ProgramStatus& status,
    std::shared_ptr<const Trust> trust) {
  auto server = std::make_unique<Server>(status);
  RETURN_IF_ERROR(server->Listen(address, std::move(trust)));
  return server;
}

}  // namespace parasol
