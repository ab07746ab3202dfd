#include "tests/fuzz/reply_target.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/rpc/library_log.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/tensor_frame.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "ml/compression/half.h"
#include "parameters/client/exchange_message.h"
#include "parameters/client/response_targets.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

constexpr uint64_t kIds[] = {1, 2, 3, 4};
constexpr size_t kLarge = 60'000;
constexpr size_t kSmall = 30;
constexpr size_t kRows = 600;
constexpr size_t kWidth = 16;
constexpr size_t kHalves = 9'000;
constexpr size_t kMaxFrameBytes = 4 << 20;

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::string FrameOf(absl::string_view bytes) {
  std::string frame;
  for (size_t i = 0; i < FrameReader::kLengthBytes; ++i) {
    frame.push_back(
        static_cast<char>(FrameLengthWord(bytes.size()) >> (8 * i)));
  }
  absl::StrAppend(&frame, bytes);
  return frame;
}

// The worker's end of a lane with its pulls in flight.
class Lane : public TargetFinder {
 public:
  using OperationPtr = std::shared_ptr<const EncodedOperation>;

  // What has come, for comparison.
  struct Received {
    std::vector<std::string> frames;
    absl::Status status;
    // The values of the pulls that were answered.
    std::map<uint64_t, std::vector<float>> values;
    size_t placed = 0;
  };

  // `has_targets`: parts of frames are received in the pulls' memory.
  explicit Lane(bool has_targets)
      : allowance_(INT64_MAX), has_targets_(has_targets) {
    AddPull(1, {5'000, kLarge - 5'000}, job::FLOAT32);
    AddPull(2, {kSmall}, job::FLOAT32);
    AddRowPull(3);
    AddPull(4, {kHalves}, job::BFLOAT16);
  }

  Received Receive(absl::string_view bytes, size_t piece_bytes) {
    Received received;
    {
      FrameReader reader({.max_frame_bytes = kMaxFrameBytes,
                          .allowance = &allowance_,
                          .target_finder = this});
      received.status = ReadAll(reader, bytes, piece_bytes, received);
    }
    CHECK_EQ(allowance_.held_bytes(), 0);
    for (const uint64_t id : kIds) CheckIsFree(id);
    received.placed = placed_;
    return received;
  }

 private:
  template <typename Subject>
  void Add(uint64_t id, Subject subject, job::Encoding encoding) {
    auto operation = std::make_shared<EncodedOperation>();
    auto call = std::make_shared<Call>();
    call->completion.Expect(1);
    operation->asked.call = std::move(call);
    operation->asked.subject = std::move(subject);
    operation->encoding = encoding;
    all_[id] = operation;
    in_flight_[id] = std::move(operation);
  }
  void AddPull(uint64_t id, const std::vector<size_t>& ranges,
               job::Encoding encoding) {
    ShardOperation::Ranges asked;
    for (const size_t count : ranges) {
      // Memory of its own for each: a sanitizer sees what goes beyond.
      std::vector<float>& target = targets_[id].emplace_back(count, 0.f);
      asked.push_back({.count = count, .target = target.data()});
    }
    Add(id, std::move(asked), encoding);
  }
  void AddRowPull(uint64_t id) {
    std::vector<float>& target = targets_[id].emplace_back(kRows * kWidth, 0.f);
    Add(id,
        ShardOperation::Rows{
            .count = kRows, .width = kWidth, .target = target.data()},
        job::FLOAT32);
  }

  OperationPtr Find(uint64_t id) const {
    const auto it = in_flight_.find(id);
    return it == in_flight_.end() ? nullptr : it->second;
  }

  std::optional<FrameTargets> FindTargets(absl::string_view start,
                                          size_t frame_bytes) override {
    MessageMemory memory;
    const std::optional<ResponseStart> response =
        ReadResponseStart(start, memory);
    if (!response.has_value()) return std::nullopt;
    if (!has_targets_) return FrameTargets();
    FrameTargets targets = FindResponseTargets(
        *response, frame_bytes, [this](uint64_t id) { return Find(id); });
    placed_ += targets.parts.empty() ? 0 : 1;
    return targets;
  }

  absl::Status ReadAll(FrameReader& reader, absl::string_view bytes,
                       size_t piece_bytes, Received& received) {
    while (true) {
      auto frame = reader.Take();
      if (!frame.ok()) return frame.status();
      if (frame->has_value()) {
        received.frames.push_back(BytesOf(**frame));
        const absl::Status answered = Answer(**frame, received);
        if (!answered.ok()) return answered;
        continue;
      }
      if (bytes.empty()) return absl::OkStatus();
      size_t fed = 0;
      const size_t most = std::min(piece_bytes, bytes.size());
      for (const iovec& piece : reader.NextPieces()) {
        const size_t some = std::min(piece.iov_len, most - fed);
        if (some == 0) break;
        std::memcpy(piece.iov_base, bytes.data() + fed, some);
        fed += some;
      }
      CHECK_GT(fed, 0u);
      reader.Received(fed);
      bytes.remove_prefix(fed);
    }
  }

  absl::Status Answer(const grpc::ByteBuffer& frame, Received& received) {
    wire::ResponseHeader header;
    const auto parsed =
        ReceivedFrame::Parse(frame, kMaxResponsePayloads, &header);
    if (!parsed.ok()) return parsed.status();
    const absl::Status sizes = CheckPayloadSizes(header, parsed->payloads());
    if (!sizes.ok()) return sizes;
    PayloadReader payloads(parsed->payloads());
    std::set<uint64_t> named;
    for (const wire::Result& result : header.result()) {
      const OperationPtr operation = Find(result.id());
      in_flight_.erase(result.id());
      const bool is_first = named.insert(result.id()).second;
      const bool has_values =
          ReadResult(result, operation.get(), payloads).ok() &&
          operation != nullptr && result.code() == 0;
      if (has_values) received.values[result.id()] = ValuesOf(result.id());
      // A second answer has overwritten the first one where it was received.
      if (!is_first) received.values.erase(result.id());
    }
    return absl::OkStatus();
  }

  std::vector<float> ValuesOf(uint64_t id) const {
    std::vector<float> values;
    for (const std::vector<float>& target : targets_.at(id)) {
      values.insert(values.end(), target.begin(), target.end());
    }
    return values;
  }

  // Checks that nobody holds the pull's memory any more.
  void CheckIsFree(uint64_t id) {
    Completion& completion = all_.at(id)->call().completion;
    completion.Finish(absl::OkStatus());
    CHECK(completion.WaitFor(Clock::Real(), absl::ZeroDuration()));
  }

  ReceiveAllowance allowance_;
  const bool has_targets_;
  std::map<uint64_t, OperationPtr> all_;
  std::map<uint64_t, OperationPtr> in_flight_;
  std::map<uint64_t, std::vector<std::vector<float>>> targets_;
  size_t placed_ = 0;
};

bool AreSame(const std::map<uint64_t, std::vector<float>>& a,
             const std::map<uint64_t, std::vector<float>>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        // By their bits: a NaN equals itself.
        return x.first == y.first && x.second.size() == y.second.size() &&
               std::memcmp(x.second.data(), y.second.data(),
                           x.second.size() * sizeof(float)) == 0;
      });
}

// Responses with payloads of rising values.
class ReplyWriter {
 public:
  void AddAnswer(uint64_t id, const std::vector<size_t>& payload_bytes) {
    wire::Result& result = *header_.add_result();
    result.set_id(id);
    for (const size_t bytes : payload_bytes) {
      std::vector<float>& values = values_.emplace_back(bytes / sizeof(float));
      std::iota(values.begin(), values.end(), 1.f);
      result.set_payload_bytes(result.payload_bytes() + bytes);
      header_.add_payload_size(bytes);
      payloads_.push_back({values.data(), bytes, nullptr});
    }
  }
  std::string Write() const {
    return FrameOf(BytesOf(EncodeFrame(header_, payloads_)));
  }

 private:
  wire::ResponseHeader header_;
  std::vector<std::vector<float>> values_;
  std::vector<PayloadRef> payloads_;
};

}  // namespace

ReplyTarget::Outcome ReplyTarget::Feed(absl::string_view bytes,
                                       size_t piece_bytes) {
  QuietLibraryLog();
  const Lane::Received placed =
      Lane(/*has_targets=*/true).Receive(bytes, piece_bytes);
  const Lane::Received copied =
      Lane(/*has_targets=*/false).Receive(bytes, piece_bytes);
  CHECK(placed.frames == copied.frames);
  CHECK_EQ(placed.status, copied.status);
  CHECK(AreSame(placed.values, copied.values));
  return {.frames = placed.frames.size(),
          .placed = placed.placed,
          .answers = placed.values.size(),
          .is_refused = !placed.status.ok()};
}

std::vector<std::string> ReplyTarget::ValidReplies() {
  constexpr size_t kLargeBytes = kLarge * sizeof(float);
  constexpr size_t kRowBytes = kRows * kWidth * sizeof(float);
  std::vector<std::string> replies;
  {
    ReplyWriter all;
    all.AddAnswer(1, {20'000, kLargeBytes - 20'000});
    all.AddAnswer(2, {kSmall * sizeof(float)});
    all.AddAnswer(3, {kRowBytes});
    all.AddAnswer(4, {EncodedBytes(job::BFLOAT16, kHalves)});
    replies.push_back(all.Write());
  }
  {
    ReplyWriter rows, values;
    rows.AddAnswer(3, {kRowBytes / 2, 0, kRowBytes / 2});
    values.AddAnswer(1, {100'000, 40'000, kLargeBytes - 140'000});
    replies.push_back(rows.Write() + values.Write());
  }
  {
    ReplyWriter one;
    one.AddAnswer(3, {kRowBytes});
    replies.push_back(one.Write());
  }
  {
    ReplyWriter small;
    small.AddAnswer(2, {kSmall * sizeof(float)});
    replies.push_back(small.Write());
  }
  return replies;
}

std::string ReplyTarget::InputFor(absl::string_view bytes) {
  const size_t most_kept = 400;
  size_t more = bytes.size() < most_kept ? 0 : (bytes.size() - most_kept) / 8;
  more = std::min<size_t>(more, UINT16_MAX);
  std::string data = {'\x11', static_cast<char>(more),
                      static_cast<char>(more >> 8)};
  absl::StrAppend(&data, bytes.substr(0, bytes.size() - 8 * more));
  return data;
}

ReplyTarget::Input ReplyTarget::InputOf(absl::string_view data) {
  if (data.size() < 3) return {};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(data[i]); };
  Input input = {.bytes = std::string(data.substr(3)),
                 .piece_bytes = 1 + size_t{byte(0)} % 128 * 300};
  const size_t more = 8 * (byte(1) + 256 * size_t{byte(2)});
  for (size_t i = 0; i < more; ++i) {
    input.bytes.push_back(static_cast<char>(i));
  }
  if (byte(0) >= 128) input.bytes = FrameOf(input.bytes);
  return input;
}

}  // namespace parasol
