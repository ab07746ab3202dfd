#include "tests/fuzz/network_targets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
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

}  // namespace

std::vector<FuzzTarget> NetworkTargets() {
  return {{"exchange", FeedExchange, ExchangeSeeds},
          {"lane", FeedLane, LaneSeeds},
          {"reply", FeedReply, ReplySeeds}};
}

}  // namespace parasol
