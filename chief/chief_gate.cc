#include "chief/chief_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/watch/findings.h"

namespace parasol {
namespace {

constexpr char kLooking[] = "the chief looks for the checkpoint to go on from";

}  // namespace

void ChiefGate::Open(ChiefServer& server) {
  absl::MutexLock lock(&mu_);
  server_ = &server;
  trouble_.clear();
}

void ChiefGate::SetTrouble(absl::string_view trouble) {
  absl::MutexLock lock(&mu_);
  trouble_ = std::string(trouble);
}

void ChiefGate::ClaimSteps(const wire::ClaimStepsRequest& request,
                           StepClaim::Done done) {
  ChiefServer* const server = Server();
  if (server == nullptr) return done(NotOpenError());
  server->ClaimSteps(request, std::move(done));
}

absl::StatusOr<wire::JobStatus> ChiefGate::GetStatus(
    const wire::GetStatusRequest& request) {
  absl::StatusOr<wire::JobStatus> status =
      Call(&ChiefServer::GetStatus, request);
  if (status.ok()) return status;
  wire::JobStatus waiting;
  waiting.set_phase(wire::WAITING_FOR_PS);
  {
    absl::MutexLock lock(&mu_);
    waiting.set_trouble(trouble_.empty() ? kLooking : trouble_);
  }
  AddFindings(waiting);
  return waiting;
}

ChiefServer* ChiefGate::Server() const {
  absl::MutexLock lock(&mu_);
  return server_;
}

absl::Status ChiefGate::NotOpenError() const {
  absl::MutexLock lock(&mu_);
  return absl::UnavailableError(
      absl::StrCat(kLooking, trouble_.empty() ? "" : ": ", trouble_));
}

}  // namespace parasol
