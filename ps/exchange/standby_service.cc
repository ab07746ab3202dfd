#include "ps/exchange/standby_service.h"

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/status.h"
#include "proto/chief.pb.h"

namespace parasol {
namespace {

// Any ps of the job may call: the chief's ticket, or the standby's number, says
// that it is the right one.
absl::Status CheckIsPs(const Rights& rights, Method method,
                       const grpc::ServerContext& context) {
  const std::optional<PeerIdentity> peer = PeerOf(context);
  wire::Task task;
  task.set_role("ps");
  if (peer) task.set_index(peer->index);
  return rights.Check(method, peer, task);
}

absl::Status Follow(StandbyHost& host, const Rights& rights,
                    grpc::ServerContext& context,
                    grpc::ServerReaderWriter<wire::FollowResponse,
                                             wire::FollowRequest>& stream) {
  RETURN_IF_ERROR(CheckIsPs(rights, Method::kFollow, context));
  wire::FollowRequest message;
  if (!stream.Read(&message)) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<StandbyHost::Stream> standby,
      host.Follow(message.header(), [&context] { context.TryCancel(); }));
  while (stream.Read(&message)) {
    ASSIGN_OR_RETURN(const std::optional<wire::FollowResponse> answer,
                     standby->Take(message));
    if (answer && !stream.Write(*answer)) break;
  }
  return absl::OkStatus();
}

absl::Status TakeStandby(StandbyHost& host, const Rights& rights,
                         grpc::ServerContext& context,
                         const wire::TakeStandbyRequest& request,
                         grpc::ServerWriter<wire::StandbyState>& writer) {
  RETURN_IF_ERROR(CheckIsPs(rights, Method::kTakeStandby, context));
  ASSIGN_OR_RETURN(const ShardState state, host.Take(request));
  wire::StandbyState message;
  RETURN_IF_ERROR(state.ForEachPiece([&](absl::string_view piece) {
    message.set_state(piece.data(), piece.size());
    return writer.Write(message) ? absl::OkStatus()
                                 : absl::CancelledError("nobody reads it");
  }));
  message.clear_state();
  message.set_state_end(true);
  writer.Write(message);
  return absl::OkStatus();
}

}  // namespace

grpc::Status ServeFollow(
    StandbyHost& host, const Rights& rights, grpc::ServerContext& context,
    grpc::ServerReaderWriter<wire::FollowResponse, wire::FollowRequest>&
        stream) {
  return ToGrpcStatus(Follow(host, rights, context, stream));
}

grpc::Status ServeTakeStandby(StandbyHost& host, const Rights& rights,
                              grpc::ServerContext& context,
                              const wire::TakeStandbyRequest& request,
                              grpc::ServerWriter<wire::StandbyState>& writer) {
  return ToGrpcStatus(TakeStandby(host, rights, context, request, writer));
}

}  // namespace parasol
