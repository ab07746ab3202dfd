#include "tests/fuzz/network_targets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "cluster/rpc/follow_frame.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/rpc/payload.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "proto/parameter.pb.h"
#include "ps/journal/push_record.h"
#include "tests/fuzz/exchange_target.h"
#include "tests/fuzz/reply_target.h"
#include "tests/fuzz/valid_requests.h"

namespace parasol {
namespace {

// The first byte says where the pieces of the message end.
void FeedExchange(absl::string_view input) {
  static ExchangeTarget* const target = new ExchangeTarget;
  if (input.empty()) return;
  target->Feed(input.substr(1), 1 + static_cast<uint8_t>(input[0]));
}

std::vector<std::string> ExchangeSeeds() {
  std::vector<std::string> seeds;
  for (const auto& request : ValidExchangeRequests()) {
    seeds.push_back(absl::StrCat("\x7F", request.SerializeAsString()));
  }
  return seeds;
}

std::string LaneBytes(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  CHECK(frame.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// A lane's bytes at a ps: frames, each of which is a message. The first byte
// says how many bytes come at a time.
void FeedLane(absl::string_view input) {
  constexpr size_t kMaxFrame = 1 << 20;
  static ExchangeTarget* const target = new ExchangeTarget;
  if (input.empty()) return;
  const size_t piece_bytes = 1 + static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  ReceiveAllowance allowance(kMaxFrame / 2);
  {
    FrameReader reader({.max_frame_bytes = kMaxFrame, .allowance = &allowance});
    while (true) {
      const auto frame = reader.Take();
      if (!frame.ok()) break;
      if (frame->has_value()) {
        target->Feed(LaneBytes(**frame), kMaxFrame);
        continue;
      }
      if (input.empty()) break;
      const iovec piece = reader.NextPieces()[0];
      const size_t bytes =
          std::min({piece_bytes, input.size(), size_t{piece.iov_len}});
      std::memcpy(piece.iov_base, input.data(), bytes);
      reader.Received(bytes);
      input.remove_prefix(bytes);
    }
  }
  CHECK_EQ(allowance.held_bytes(), 0);
}

std::vector<std::string> LaneSeeds() {
  std::string all = "\x7F";
  for (const auto& request : ValidExchangeRequests()) {
    const std::string message = request.SerializeAsString();
    const uint64_t length = message.size();
    all.append(reinterpret_cast<const char*>(&length), sizeof(length));
    absl::StrAppend(&all, message);
  }
  return {all};
}

void FeedReply(absl::string_view input) {
  const ReplyTarget::Input stream = ReplyTarget::InputOf(input);
  ReplyTarget::Feed(stream.bytes, stream.piece_bytes);
}

std::vector<std::string> ReplySeeds() {
  std::vector<std::string> seeds;
  for (const std::string& reply : ReplyTarget::ValidReplies()) {
    seeds.push_back(ReplyTarget::InputFor(reply));
  }
  return seeds;
}

// A message of a primary on a lane, of which a standby reads the pushes.
void FeedFollow(absl::string_view input) {
  const grpc::Slice slice(input.data(), input.size());
  const auto message = ReceivedFollow::Parse(grpc::ByteBuffer(&slice, 1));
  if (!message.ok()) return;
  absl::Span<const PayloadView> tensors = message->tensors();
  for (const std::string& record : message->request().record()) {
    const size_t before = tensors.size();
    const auto push = ParsePushHead(record, tensors);
    CHECK_EQ(before - tensors.size(), push.ok() ? push->payloads.size() : 0);
    if (!push.ok()) return;
  }
}

// Returns a field of protobuf that has these bytes.
std::string FieldOf(int number, absl::string_view bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) {
    field.push_back(static_cast<char>(size | 0x80));
  }
  field.push_back(static_cast<char>(size));
  absl::StrAppend(&field, bytes);
  return field;
}

// With the checksum of the header, which finds most changes of it, and without.
std::vector<std::string> FollowSeeds() {
  FollowMessage message;
  std::string tensors;
  wire::FollowRequest header;
  for (const auto& request : ValidExchangeRequests()) {
    for (const wire::Operation& operation : request.header().operation()) {
      if (!operation.has_push() && !operation.has_row_push()) continue;
      const std::string& bytes = request.payload(0);
      const PayloadView payload(PayloadView::Pieces{bytes});
      message.records.push_back(RecordToSend(
          {.worker_incarnation = request.header().worker_incarnation(),
           .operation = operation,
           .payloads = {&payload, 1}}));
      header.add_record(message.records.back().head);
      absl::StrAppend(&tensors, FieldOf(2, bytes));
    }
  }
  return {LaneBytes(EncodeFollow(message)),
          absl::StrCat(FieldOf(1, header.SerializeAsString()), tensors)};
}

}  // namespace

std::vector<FuzzTarget> NetworkTargets() {
  return {{"exchange", FeedExchange, ExchangeSeeds},
          {"follow", FeedFollow, FollowSeeds},
          {"lane", FeedLane, LaneSeeds},
          {"reply", FeedReply, ReplySeeds}};
}

}  // namespace parasol
