#include "cluster/client/standby_client.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cluster/client/standby_call.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/deadline.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

// Returns who is to be at the place, "ps/1".
Callee CalleeAt(const wire::StandbyPlace& place,
                std::shared_ptr<const Trust> trust) {
  const absl::string_view task = place.task();
  int index = 0;
  if (!absl::SimpleAtoi(task.substr(task.find('/') + 1), &index)) index = -1;
  return Callee::Ps(std::move(trust), index);
}

std::string PeerAt(const wire::StandbyPlace& place) {
  return absl::StrCat(place.task(), " at ", place.address());
}

class GrpcStandbyClient : public StandbyClient {
 public:
  explicit GrpcStandbyClient(std::shared_ptr<const Trust> trust)
      : trust_(std::move(trust)) {}

  std::unique_ptr<StandbyCall> Follow(
      const wire::StandbyPlace& place,
      StandbyCall::Observer& observer) override {
    return std::make_unique<LaneStandbyCall>(place, CalleeAt(place, trust_),
                                             observer, broken_lanes_);
  }

  absl::Status TakeStandby(
      const wire::StandbyPlace& place, const wire::TakeStandbyRequest& request,
      absl::Duration deadline,
      absl::FunctionRef<absl::Status(const wire::StandbyState&)> take)
      override {
    const auto channel =
        MakeTensorChannel(place.address(), CalleeAt(place, trust_));
    const auto stub = wire::ParameterService::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(deadline));
    const auto stream = stub->TakeStandby(&context, request);
    wire::StandbyState piece;
    bool is_whole = false;
    absl::Status taken;
    while (taken.ok() && stream->Read(&piece)) {
      taken = take(piece);
      is_whole = piece.state_end();
    }
    if (!taken.ok()) context.TryCancel();
    const grpc::Status status = stream->Finish();
    if (!taken.ok()) return taken;
    if (!status.ok()) return FromGrpcStatus(status, PeerAt(place));
    if (is_whole) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(PeerAt(place), ": the standby's state is cut off"));
  }

 private:
  const std::shared_ptr<const Trust> trust_;
  const std::shared_ptr<BrokenLanes> broken_lanes_ =
      std::make_shared<BrokenLanes>();
};

}  // namespace

std::unique_ptr<StandbyClient> StandbyClient::Create(
    std::shared_ptr<const Trust> trust) {
  return std::make_unique<GrpcStandbyClient>(std::move(trust));
}

}  // namespace parasol
