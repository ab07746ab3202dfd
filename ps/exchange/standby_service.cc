#include "ps/exchange/standby_service.h"

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/tls_context.h"
#include "proto/chief.pb.h"
#include "ps/exchange/follow_lane_service.h"

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

using FollowStream =
    grpc::ServerReaderWriter<wire::FollowResponse, wire::FollowRequest>;

// Answers a primary that asks for a lane. Returns it; null: its messages travel
// in the call.
std::unique_ptr<FollowLane> OfferLane(StandbyHost& host, PayloadHost* lanes,
                                      grpc::ServerContext& context,
                                      FollowStream& stream) {
  const auto& metadata = context.client_metadata();
  const auto request = metadata.find(kPayloadLaneKey);
  if (request == metadata.end()) return nullptr;
  std::unique_ptr<FollowLane> lane;
  if (lanes != nullptr && request->second == kPayloadLaneRequest) {
    // A lane is a part of its call: the same task is at its other end.
    const PeerIdentity primary = PeerOf(context).value_or(PeerIdentity());
    lane = std::make_unique<FollowLane>(
        host, *lanes, ExpectedPeer{primary.role, primary.index},
        [&context] { context.TryCancel(); },
        [&context] { return context.IsCancelled(); });
  }
  context.AddInitialMetadata(kPayloadLaneKey, lane == nullptr
                                                  ? kNoPayloadLane
                                                  : lane->offer().ToString());
  stream.SendInitialMetadata();
  return lane;
}

absl::Status Follow(StandbyHost& host,
                    const ExchangeStream::Environment& environment,
                    grpc::ServerContext& context, FollowStream& stream) {
  RETURN_IF_ERROR(
      CheckIsPs(environment.access.rights, Method::kFollow, context));
  const std::unique_ptr<FollowLane> lane =
      OfferLane(host, environment.lanes, context, stream);
  if (lane != nullptr) return lane->Serve(environment.metrics.lanes);
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
  message.set_journal(state.in_journal().journal);
  message.set_journal_record(state.in_journal().record);
  writer.Write(message);
  return absl::OkStatus();
}

}  // namespace

grpc::Status ServeFollow(StandbyHost& host,
                         const ExchangeStream::Environment& environment,
                         grpc::ServerContext& context, FollowStream& stream) {
  return ToGrpcStatus(Follow(host, environment, context, stream));
}

grpc::Status ServeTakeStandby(StandbyHost& host, const Rights& rights,
                              grpc::ServerContext& context,
                              const wire::TakeStandbyRequest& request,
                              grpc::ServerWriter<wire::StandbyState>& writer) {
  return ToGrpcStatus(TakeStandby(host, rights, context, request, writer));
}

}  // namespace parasol
