#ifndef PARASOL_CLUSTER_CLIENT_TESTING_FAKE_CHIEF_H_
#define PARASOL_CLUSTER_CLIENT_TESTING_FAKE_CHIEF_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/client/chief_client.h"

namespace parasol {

// A chief whose calls fail with Unimplemented, but for those that a test
// defines in a derived class.
class FakeChief : public ChiefClient {
 public:
  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::Status ReportFailure(const wire::ReportFailureRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::Status Leave(const wire::LeaveRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::JobStatus> GetStatus() override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest&) override {
    return absl::UnimplementedError("fake");
  }
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_TESTING_FAKE_CHIEF_H_
