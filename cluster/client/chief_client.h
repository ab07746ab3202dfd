#ifndef PARASOL_CLUSTER_CLIENT_CHIEF_CLIENT_H_
#define PARASOL_CLUSTER_CLIENT_CHIEF_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"

namespace parasol {

// The chief's calls, one attempt each. The deadline of a call is
// `call_deadline`, plus the time that the call asks the chief to wait.
// Each call of a task names the newest chief that has answered
// (wire::Task::chief_epoch). Thread-safe. Errors are the service's
// (proto/chief.proto), and
//   Unavailable, DeadlineExceeded  the chief at `address` does not answer, or
//                                  it was replaced; the next call goes over a
//                                  new connection.
class ChiefClient {
 public:
  virtual ~ChiefClient() = default;
  static std::unique_ptr<ChiefClient> Create(const std::string& address,
                                             absl::Duration call_deadline,
                                             Callee callee = {});

  virtual absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request) = 0;
  virtual absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<wire::GetPlacementResponse> GetPlacement() = 0;
  virtual absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request) = 0;
  virtual absl::Status ReportFailure(
      const wire::ReportFailureRequest& request) = 0;
  virtual absl::Status Leave(const wire::LeaveRequest& request) = 0;
  virtual absl::StatusOr<wire::JobStatus> GetStatus() = 0;
  virtual absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request) = 0;

  // Makes later calls go over a new connection, to whichever process is at the
  // address then.
  virtual void DropConnection() {}
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_CHIEF_CLIENT_H_
