#include "loop/peers/program_status.h"

#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "chief/job_page.h"
#include "cluster/rpc/server.h"
#include "coordinator/watch/findings.h"
#include "loop/peers/program_chief.h"
#include "worker/lone_status_service.h"

namespace parasol {
namespace {

class Server : public ProgramStatusServer {
 public:
  explicit Server(const ProgramStatus& status)
      : service_([&status] { return status.Status(); }) {}

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

ProgramStatus::ProgramStatus()
    : page_(std::make_unique<JobPage>(Clock::Real())) {}
ProgramStatus::~ProgramStatus() = default;

PageServer::Page ProgramStatus::PageAt(absl::string_view path) const {
  return page_->At(path);
}

void ProgramStatus::Show(const ProgramChief* chief) {
  absl::MutexLock lock(&mu_);
  chief_ = chief;
}

wire::JobStatus ProgramStatus::Status() const {
  absl::MutexLock lock(&mu_);
  if (chief_ != nullptr) return chief_->Status();
  wire::JobStatus status;
  status.set_phase(wire::LOADING);
  status.set_trouble("the program's processes have not met");
  AddFindings(status);
  return status;
}

absl::StatusOr<std::unique_ptr<ProgramStatusServer>> ProgramStatusServer::Start(
    const std::string& address, const ProgramStatus& status,
    std::shared_ptr<const Trust> trust) {
  auto server = std::make_unique<Server>(status);
  RETURN_IF_ERROR(server->Listen(address, std::move(trust)));
  return server;
}

}  // namespace parasol
