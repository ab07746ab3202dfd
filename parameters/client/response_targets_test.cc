#include "parameters/client/response_targets.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/tensor_frame.h"
#include "gmock/gmock.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "ml/compression/half.h"
#include "parameters/client/exchange_message.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using OperationPtr = std::shared_ptr<const EncodedOperation>;

// A response of a ps and the pulls that it answers.
class ResponseTargetsTest : public testing::Test {
 protected:
  // Adds a pull of ranges of so many elements, and its answer, which the ps
  // sends as payloads of so many elements.
  void AddPull(uint64_t id, const std::vector<size_t>& ranges,
               const std::vector<size_t>& payloads,
               job::Encoding encoding = job::FLOAT32) {
    auto operation = std::make_shared<EncodedOperation>();
    operation->encoding = encoding;
    auto call = std::make_shared<Call>();
    call->completion.Expect(1);
    operation->asked.call = std::move(call);
    ShardOperation::Ranges asked;
    for (const size_t count : ranges) {
      targets_.emplace_back(count, 0.f);
      asked.push_back({.count = count, .target = targets_.back().data()});
    }
    operation->asked.subject = asked;
    operations_[id] = std::move(operation);
    AddAnswer(id, payloads, encoding);
  }
  void AddRowPull(uint64_t id, uint32_t count, size_t width,
                  std::vector<uint32_t> positions) {
    auto operation = std::make_shared<EncodedOperation>();
    auto call = std::make_shared<Call>();
    call->completion.Expect(1);
    operation->asked.call = std::move(call);
    targets_.emplace_back(count * width, 0.f);
    operation->asked.subject =
        ShardOperation::Rows{.count = count,
                             .width = width,
                             .positions = std::move(positions),
                             .target = targets_.back().data()};
    operations_[id] = std::move(operation);
    AddAnswer(id, {count * width}, job::FLOAT32);
  }
  void AddAnswer(uint64_t id, const std::vector<size_t>& payloads,
                 job::Encoding encoding) {
    wire::Result& result = *header_.add_result();
    result.set_id(id);
    for (const size_t elements : payloads) {
      std::vector<float>& values = sent_.emplace_back(elements);
      std::iota(values.begin(), values.end(), static_cast<float>(next_));
      next_ += elements;
      const size_t bytes = EncodedBytes(encoding, elements);
      result.set_payload_bytes(result.payload_bytes() + bytes);
      header_.add_payload_size(bytes);
      payloads_.push_back({values.data(), bytes, nullptr});
    }
  }

  std::string Encoded() const {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(EncodeFrame(header_, payloads_).Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }
  OperationPtr Find(uint64_t id) const {
    const auto it = operations_.find(id);
    return it == operations_.end() ? nullptr : it->second;
  }
  FrameTargets Targets(const std::string& frame) const {
    MessageMemory memory;
    const auto start = ReadResponseStart(frame, memory);
    EXPECT_TRUE(start.has_value());
    return FindResponseTargets(*start, frame.size(),
                               [this](uint64_t id) { return Find(id); });
  }

  // Receives the frame as a lane does, parts of it in their targets.
  grpc::ByteBuffer Receive(std::string frame) {
    class Finder : public TargetFinder {
     public:
      explicit Finder(ResponseTargetsTest& test) : test_(test) {}
      std::optional<FrameTargets> FindTargets(absl::string_view start,
                                              size_t frame_bytes) override {
        MessageMemory memory;
        const auto response = ReadResponseStart(start, memory);
        if (!response.has_value()) return std::nullopt;
        return FindResponseTargets(*response, frame_bytes, [this](uint64_t id) {
          return test_.Find(id);
        });
      }

     private:
      ResponseTargetsTest& test_;
    } finder(*this);
    FrameReader reader({.max_frame_bytes = 64 << 20, .target_finder = &finder});
    const uint64_t length = FrameLengthWord(frame.size());
    frame.insert(0, reinterpret_cast<const char*>(&length), sizeof(length));
    size_t at = 0;
    while (true) {
      auto received = reader.Take();
      EXPECT_OK(received);
      if (received->has_value()) return **std::move(received);
      size_t most = 100000;
      size_t fed = 0;
      for (const iovec& piece : reader.NextPieces()) {
        const size_t some =
            std::min({piece.iov_len, most, frame.size() - at - fed});
        std::memcpy(piece.iov_base, frame.data() + at + fed, some);
        fed += some;
        most -= some;
        if (some < piece.iov_len) break;
      }
      reader.Received(fed);
      at += fed;
    }
  }

  // Reads all results as a link does, and expects the values that were sent.
  void ReadAll(const grpc::ByteBuffer& buffer) {
    wire::ResponseHeader header;
    ASSERT_OK_AND_ASSIGN(const ReceivedFrame frame,
                         ReceivedFrame::Parse(buffer, 1000, &header));
    EXPECT_OK(CheckPayloadSizes(header, frame.payloads()));
    PayloadReader reader(frame.payloads());
    for (const wire::Result& result : header.result()) {
      EXPECT_OK(ReadResult(result, Find(result.id()).get(), reader));
    }
    EXPECT_EQ(reader.remaining(), 0u);
  }
  std::vector<float> AllTargets() const {
    std::vector<float> all;
    for (const auto& target : targets_) {
      all.insert(all.end(), target.begin(), target.end());
    }
    return all;
  }
  bool IsHeld(uint64_t id) const {
    Completion& completion = Find(id)->call().completion;
    completion.Finish(absl::OkStatus());
    const bool held = !completion.WaitFor(Clock::Real(), absl::ZeroDuration());
    completion.Expect(1);
    return held;
  }

  wire::ResponseHeader header_;
  std::map<uint64_t, OperationPtr> operations_;
  std::vector<std::vector<float>> targets_;
  std::vector<std::vector<float>> sent_;
  std::vector<PayloadRef> payloads_;
  size_t next_ = 1;
};

TEST_F(ResponseTargetsTest, ValuesAreReceivedWhereTheyBelong) {
  AddPull(1, {5000, 100000}, {65536, 39464});
  AddPull(2, {30}, {30});
  AddRowPull(3, 1000, 16, {});
  AddPull(4, {70000}, {4, 0, 69996});
  const std::string frame = Encoded();
  size_t targeted = 0;
  for (const FrameTargets::Part& part : Targets(frame).parts) {
    targeted += part.count;
  }
  EXPECT_EQ(targeted, sizeof(float) * (105000 + 16000 + 69996));
  std::vector<float> expected;
  for (const auto& values : sent_) {
    expected.insert(expected.end(), values.begin(), values.end());
  }
  ReadAll(Receive(frame));
  EXPECT_EQ(AllTargets(), expected);
}

TEST_F(ResponseTargetsTest, TheCallersMemoryIsHeldUntilTheFrameIsReleased) {
  AddPull(1, {70000}, {70000});
  AddPull(2, {30}, {30});
  {
    const FrameTargets targets = Targets(Encoded());
    EXPECT_TRUE(IsHeld(1));
    EXPECT_FALSE(IsHeld(2)) << "it is copied";
  }
  EXPECT_FALSE(IsHeld(1));
  {
    const grpc::ByteBuffer frame = Receive(Encoded());
    EXPECT_TRUE(IsHeld(1));
  }
  EXPECT_FALSE(IsHeld(1));
}

TEST_F(ResponseTargetsTest, WhatIsDecodedOrScatteredHasNoPlace) {
  AddPull(1, {70000}, {70000}, job::BFLOAT16);
  std::vector<uint32_t> positions(1000);
  std::iota(positions.rbegin(), positions.rend(), 0);
  AddRowPull(2, 1000, 16, positions);
  EXPECT_THAT(Targets(Encoded()).parts, IsEmpty());
  ReadAll(Receive(Encoded()));
}

TEST_F(ResponseTargetsTest, AnUnknownOrWrongResultHasNoPlace) {
  AddPull(1, {70000}, {70000});
  AddPull(2, {80000}, {80000});
  AddPull(3, {90000}, {90000});
  operations_.erase(2);                     // it was given up
  header_.mutable_result(0)->set_code(13);  // with a payload all the same
  EXPECT_THAT(Targets(Encoded()).parts, SizeIs(1));
  const float* given_up = targets_[1].data();
  ReadAll(Receive(Encoded()));
  EXPECT_EQ(targets_[2], sent_[2]);
  EXPECT_THAT(targets_[0], Each(0));
  EXPECT_EQ(*given_up, 0);
  header_.mutable_result(2)->set_payload_bytes(360000 - 4);
  EXPECT_THAT(Targets(Encoded()).parts, IsEmpty());
}

TEST_F(ResponseTargetsTest, SizesThatAreNoneOfTheFrameGiveNoPlaces) {
  AddPull(1, {70000}, {70000});
  header_.set_payload_size(0, 280001);
  EXPECT_THAT(Targets(Encoded()).parts, IsEmpty());
  header_.clear_payload_size();
  EXPECT_THAT(Targets(Encoded()).parts, IsEmpty());
  header_.add_payload_size(280000);
  EXPECT_THAT(Targets(Encoded()).parts, SizeIs(1));
  header_.add_shared_payload();
  EXPECT_THAT(Targets(Encoded()).parts, IsEmpty());
}

// Headers that lie in any way: nothing is written outside the targets, and the
// calls' memory is released in the end.
TEST_F(ResponseTargetsTest, AHeaderThatLiesHarmsNothing) {
  AddPull(1, {70000}, {70000});
  AddPull(2, {5000, 9000}, {14000});
  AddRowPull(3, 1000, 16, {});
  const wire::ResponseHeader honest = header_;
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    header_ = honest;
    for (uint64_t lies = 1 + random() % 3; lies > 0; --lies) {
      wire::Result& result = *header_.mutable_result(random() % 3);
      const int payload = static_cast<int>(random() % 3);
      switch (random() % 6) {
        case 0:
          result.set_id(1 + random() % 4);
          break;
        case 1:
          result.set_payload_bytes(random() % 3 == 0 ? random()
                                                     : random() % 300000);
          break;
        case 2:
          header_.set_payload_size(payload, random() % 300000);
          break;
        case 3:
          header_.mutable_payload_size()->SwapElements(payload, 0);
          break;
        case 4:
          header_.add_payload_size(random() % 2 == 0 ? 0 : random() % 100000);
          break;
        case 5:
          result.set_code(random() % 2 == 0 ? 0 : 13);
          break;
      }
    }
    const grpc::ByteBuffer frame = Receive(Encoded());
    wire::ResponseHeader header;
    const auto parsed = ReceivedFrame::Parse(frame, 1000, &header);
    if (!parsed.ok() || !CheckPayloadSizes(header, parsed->payloads()).ok()) {
      continue;
    }
    PayloadReader reader(parsed->payloads());
    for (const wire::Result& result : header.result()) {
      ReadResult(result, Find(result.id()).get(), reader).IgnoreError();
    }
  }
  for (const uint64_t id : {1, 2, 3}) EXPECT_FALSE(IsHeld(id));
}

// The frame is filled either way, and the tags lie elsewhere.
TEST_F(ResponseTargetsTest, SizesInAnotherOrderAreRefused) {
  AddPull(1, {14000, 70000}, {70000, 14000});
  header_.mutable_payload_size()->SwapElements(0, 1);
  wire::ResponseHeader header;
  ASSERT_OK_AND_ASSIGN(const ReceivedFrame frame,
                       ReceivedFrame::Parse(Receive(Encoded()), 10, &header));
  EXPECT_THAT(CheckPayloadSizes(header, frame.payloads()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  header.add_payload_size(0);
  EXPECT_THAT(CheckPayloadSizes(header, frame.payloads()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  header.clear_payload_size();
  EXPECT_OK(CheckPayloadSizes(header, frame.payloads()));
}

TEST_F(ResponseTargetsTest, AStartThatIsCutShortAsksForMore) {
  AddPull(1, {70000}, {70000});
  const std::string frame = Encoded();
  MessageMemory memory;
  const size_t end = ReadResponseStart(frame, memory)->end;
  for (size_t bytes = 0; bytes < end; ++bytes) {
    EXPECT_FALSE(ReadResponseStart(frame.substr(0, bytes), memory).has_value());
  }
  EXPECT_TRUE(ReadResponseStart(frame.substr(0, end), memory).has_value());
}

TEST_F(ResponseTargetsTest, WhatIsNoResponseHasNoPlaces) {
  for (const std::string& bytes : {std::string("\x12\x03"
                                               "abc"),
                                   std::string("\x0a\xff\xff\xff\xff\xff\xff"),
                                   std::string("\x0a\x02\xff\xff")}) {
    MessageMemory memory;
    const auto start = ReadResponseStart(bytes, memory);
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->end, 0u);
  }
}

}  // namespace
}  // namespace parasol
