#ifndef PARASOL_CHIEF_CHIEF_GATE_H_
#define PARASOL_CHIEF_CHIEF_GATE_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "chief/chief_server.h"
#include "proto/chief.pb.h"

namespace parasol {

// The way of the rpcs to the chief's server, which is there once the chief has
// found what it goes on with. Until then calls are answered with Unavailable,
// and GetStatus with what the chief waits for. Thread-safe.
class ChiefGate {
 public:
  // Lets calls through to `server`, which must outlive the rpcs.
  void Open(ChiefServer& server) ABSL_LOCKS_EXCLUDED(mu_);
  // Sets what callers are told while the gate is closed.
  void SetTrouble(absl::string_view trouble) ABSL_LOCKS_EXCLUDED(mu_);

  // Makes the call, if the gate is open.
  //   Unavailable  it is closed; the message has the trouble.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      absl::StatusOr<Response> (ChiefServer::*rpc)(const Request&),
      const Request& request) {
    ChiefServer* const server = Server();
    if (server == nullptr) return NotOpenError();
    return (server->*rpc)(request);
  }

  // Has the server call `done`, or calls it with the error of Call().
  void ClaimSteps(const wire::ClaimStepsRequest& request, StepClaim::Done done);

  // Returns the server's answer, or else a status that waits for ps and names
  // the chief's trouble.
  absl::StatusOr<wire::JobStatus> GetStatus(
      const wire::GetStatusRequest& request);

 private:
  // Returns the server; null if there is none.
  ChiefServer* Server() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status NotOpenError() const ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  ChiefServer* server_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::string trouble_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_GATE_H_
