#include "cluster/rpc/tensor_frame.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

using testing::HasSubstr;
using wire::ExchangeRequest;
using wire::RequestHeader;

constexpr size_t kMaxPayloads = 64;

std::string AllBytes(const PayloadView& payload) {
  std::string bytes(payload.size(), '\0');
  payload.CopyTo(0, bytes.size(), bytes.data());
  return bytes;
}

std::string AllBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(slice.begin(), slice.end());
  }
  return bytes;
}

grpc::ByteBuffer OneSlice(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// What random frames are drawn from; failures print its seed.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }

  std::string Bytes(size_t max_size) {
    std::string bytes(Below(max_size + 1), '\0');
    for (char& c : bytes) c = static_cast<char>(random_());
    return bytes;
  }

  // Random splits, empty slices among them.
  grpc::ByteBuffer Split(const std::string& bytes) {
    std::vector<size_t> ends(Below(6));
    for (size_t& end : ends) end = Below(bytes.size() + 1);
    ends.push_back(bytes.size());
    std::sort(ends.begin(), ends.end());
    std::vector<grpc::Slice> slices;
    size_t begin = 0;
    for (size_t end : ends) {
      slices.emplace_back(bytes.substr(begin, end - begin));
      begin = end;
    }
    return grpc::ByteBuffer(slices.data(), slices.size());
  }

  RequestHeader Header() {
    RequestHeader header;
    header.set_worker_incarnation(random_());
    header.set_run_id(std::string(Below(40), 'r'));
    const size_t operations = Below(3);
    for (size_t i = 0; i < operations; ++i) {
      *header.add_operation() = Operation();
    }
    return header;
  }

  wire::Operation Operation() {
    wire::Operation operation;
    operation.set_id(random_());
    const size_t ranges = Below(4);
    if (Below(2) == 0) {
      wire::Push& push = *operation.mutable_push();
      push.set_sequence(uint64_t{1} << Below(64));
      for (size_t i = 0; i < ranges; ++i)
        push.add_range()->set_first(random_());
    } else {
      wire::Pull& pull = *operation.mutable_pull();
      for (size_t i = 0; i < ranges; ++i)
        pull.add_range()->set_count(random_());
    }
    return operation;
  }

  // The request as protobuf writes it, with what it may also be written as:
  // fields of a later version, and a second header.
  std::string Message() {
    ExchangeRequest request;
    *request.mutable_header() = Header();
    const size_t payloads = Below(5);
    for (size_t i = 0; i < payloads; ++i) request.add_payload(Bytes(300));
    AddUnknownFields(request);
    std::string bytes = request.SerializeAsString();
    if (Below(3) == 0) {
      ExchangeRequest again;
      *again.mutable_header() = Header();
      bytes += again.SerializeAsString();
    }
    return bytes;
  }

  void Mutate(std::string& bytes) {
    if (bytes.empty()) return;
    switch (Below(3)) {
      case 0:
        bytes[Below(bytes.size())] = static_cast<char>(random_());
        break;
      case 1:
        bytes.resize(Below(bytes.size()));
        break;
      default:
        bytes.insert(Below(bytes.size()), Bytes(4));
    }
  }

 private:
  void AddUnknownFields(ExchangeRequest& request) {
    auto* unknown = request.GetReflection()->MutableUnknownFields(&request);
    if (Below(2) == 0) unknown->AddVarint(1 + Below(1000), ~uint64_t{0});
    if (Below(2) == 0) unknown->AddFixed32(3, random_());
    if (Below(2) == 0) unknown->AddFixed64(5000, random_());
    if (Below(2) == 0) unknown->AddLengthDelimited(17, Bytes(20));
  }

  std::mt19937 random_;
};

// Serialised, the header is compared with its unknown fields.
void ExpectSame(const ReceivedFrame& frame, const RequestHeader& header,
                const ExchangeRequest& want) {
  EXPECT_EQ(header.SerializeAsString(), want.header().SerializeAsString());
  ASSERT_EQ(frame.payloads().size(), static_cast<size_t>(want.payload_size()));
  for (size_t i = 0; i < frame.payloads().size(); ++i) {
    EXPECT_EQ(AllBytes(frame.payloads()[i]), want.payload(i));
  }
}

TEST(TensorFrameTest, AFrameIsWhatProtobufWritesForTheMessage) {
  Draw draw(1);
  for (int i = 0; i < 300; ++i) {
    ExchangeRequest request;
    *request.mutable_header() = draw.Header();
    std::vector<std::string> bytes(draw.Below(5));
    std::vector<PayloadRef> payloads;
    for (std::string& b : bytes) {
      b = draw.Bytes(1000);
      request.add_payload(b);
      payloads.push_back({b.data(), b.size(), nullptr});
    }
    ExchangeRequest read;
    ASSERT_TRUE(read.ParseFromString(
        AllBytes(EncodeFrame(request.header(), payloads))));
    // The header's checksum is all that protobuf does not know.
    read.mutable_header()->DiscardUnknownFields();
    EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
  }
}

TEST(TensorFrameTest, AFrameIsReadAsProtobufReadsItWhereverSlicesEnd) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const std::string bytes = draw.Message();
    ExchangeRequest want;
    ASSERT_TRUE(want.ParseFromString(bytes));
    RequestHeader header;
    ASSERT_OK_AND_ASSIGN(
        ReceivedFrame frame,
        ReceivedFrame::Parse(draw.Split(bytes), kMaxPayloads, &header));
    ExpectSame(frame, header, want);
  }
}

TEST(TensorFrameTest, BrokenBytesAreRefusedOrReadAsProtobufReadsThem) {
  int accepted = 0, refused = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    std::string bytes = draw.Message();
    draw.Mutate(bytes);
    RequestHeader header;
    absl::StatusOr<ReceivedFrame> frame =
        ReceivedFrame::Parse(draw.Split(bytes), kMaxPayloads, &header);
    if (!frame.ok()) {
      EXPECT_THAT(frame, StatusIs(absl::StatusCode::kInvalidArgument));
      ++refused;
      continue;
    }
    ++accepted;
    ExchangeRequest want;
    ASSERT_TRUE(want.ParseFromString(bytes));
    ExpectSame(*frame, header, want);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(TensorFrameTest, BytesThatAreNoMessageAreNamed) {
  struct Case {
    std::string name;
    std::string bytes;
    std::string want;
  };
  const Case cases[] = {
      {"length beyond the end",
       {"\x12\x05"
        "ab",
        4},
       "5 bytes announced, 2 there"},
      {"length of 4 GiB", "\x12\xFF\xFF\xFF\xFF\x0F", "0 there"},
      {"length of more than 32 bits", "\x12\xFF\xFF\xFF\xFF\xFF\x01",
       "bad varint"},
      {"varint without end", std::string("\x18") + std::string(11, '\xFF'),
       "bad varint"},
      {"tag cut short", "\x92", "bad varint"},
      {"field 0", std::string("\x02\x00", 2), "bad tag"},
      {"group", "\x1B\x1C", "wire type 3"},
      {"wire type that is none", "\x1E", "wire type 6"},
      {"header that is none", "\x0A\x01\xFF", "bad header"},
      {"header too large",
       absl::StrCat("\x0A\x81\x80\x40", std::string(kMaxHeaderBytes + 1, 'x')),
       "a header of 1048577 bytes"},
      {"name that is not UTF-8", "\x0A\x03\x0A\x01\xFF", "bad header"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RequestHeader header;
    EXPECT_THAT(
        ReceivedFrame::Parse(OneSlice(c.bytes), kMaxPayloads, &header),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(TensorFrameTest, HeadersThatAreTooLargeTogetherAreRefused) {
  RequestHeader header;
  header.set_run_id(std::string(kMaxHeaderBytes / 2, 'x'));
  ExchangeRequest request;
  *request.mutable_header() = header;
  const std::string once = request.SerializeAsString();
  EXPECT_OK(ReceivedFrame::Parse(OneSlice(once), kMaxPayloads, &header));
  EXPECT_THAT(
      ReceivedFrame::Parse(OneSlice(once + once), kMaxPayloads, &header),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a header of")));
}

TEST(TensorFrameTest, MorePayloadsThanAllowedAreRefused) {
  ExchangeRequest request;
  for (int i = 0; i < 3; ++i) request.add_payload("");
  const grpc::ByteBuffer buffer = OneSlice(request.SerializeAsString());
  RequestHeader header;
  EXPECT_OK(ReceivedFrame::Parse(buffer, 3, &header));
  EXPECT_THAT(ReceivedFrame::Parse(buffer, 2, &header),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 2 payloads")));
}

TEST(TensorFrameTest, OwnersOfLargePayloadsAreReleasedWithTheBuffer) {
  const std::string bytes(1 << 20, 'x');
  auto owner = std::make_shared<int>(0);
  {
    const grpc::ByteBuffer buffer =
        EncodeFrame(RequestHeader(), {{bytes.data(), bytes.size(), owner}});
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(TensorFrameTest, OwnersOfSmallPayloadsAreReleasedAtOnce) {
  const float values[] = {1, 2, 3};
  auto owner = std::make_shared<int>(0);
  const grpc::ByteBuffer buffer =
      EncodeFrame(RequestHeader(), {{values, sizeof(values), owner}});
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(TensorFrameTest, PayloadsOfEachSizeKeepTheirPlaces) {
  ExchangeRequest want;
  want.mutable_header()->set_run_id("run");
  for (const size_t size : {10, 100000, 0, 8192, 8193, 1, 200000, 0}) {
    want.add_payload(std::string(size, 'a' + want.payload_size()));
  }
  std::vector<PayloadRef> payloads;
  for (const std::string& payload : want.payload()) {
    payloads.push_back({payload.data(), payload.size(), nullptr});
  }
  ExchangeRequest read;
  ASSERT_TRUE(
      read.ParseFromString(AllBytes(EncodeFrame(want.header(), payloads))));
  read.mutable_header()->DiscardUnknownFields();
  EXPECT_EQ(read.SerializeAsString(), want.SerializeAsString());
}

TEST(TensorFrameTest, PayloadsStayWhenTheBufferIsGoneAndTheFrameMoves) {
  // One short enough to live in its slice, one not.
  ExchangeRequest request;
  request.add_payload("short");
  request.add_payload(std::string(1000, 'l'));
  RequestHeader header;
  absl::StatusOr<ReceivedFrame> parsed = [&] {
    Draw draw(7);
    return ReceivedFrame::Parse(draw.Split(request.SerializeAsString()),
                                kMaxPayloads, &header);
  }();
  ASSERT_OK(parsed);
  const ReceivedFrame moved = *std::move(parsed);
  EXPECT_EQ(AllBytes(moved.payloads()[0]), "short");
  EXPECT_EQ(AllBytes(moved.payloads()[1]), std::string(1000, 'l'));
}

// A header that is damaged is none: it is no other request.
TEST(TensorFrameTest, EachFlippedBitOfAHeaderIsSeen) {
  RequestHeader header;
  header.set_run_id("run");
  header.set_worker_incarnation(7);
  header.set_layout(9);
  wire::Operation& operation = *header.add_operation();
  operation.set_id(3);
  operation.mutable_push()->set_sequence(5);
  operation.mutable_push()->add_range()->set_first(65536);
  const std::string bytes = AllBytes(EncodeFrame(header, {}));
  // The bits of the check itself may be skipped, and then the header is whole.
  const size_t checked = bytes.size() - 7;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    RequestHeader parsed;
    const bool is_taken =
        ReceivedFrame::Parse(OneSlice(damaged), kMaxPayloads, &parsed).ok();
    if (bit / 8 >= 2 && bit / 8 < checked) {
      EXPECT_FALSE(is_taken);
    } else if (is_taken && parsed.operation_size() > 0) {
      EXPECT_EQ(parsed.operation(0).push().sequence(), 5);
    }
  }
}

}  // namespace
}  // namespace parasol
