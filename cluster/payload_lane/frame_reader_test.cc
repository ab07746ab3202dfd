#include "cluster/payload_lane/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLimit = 1 << 20;

std::string FrameOf(const std::string& bytes) {
  std::string frame;
  for (size_t i = 0; i < FrameReader::kLengthBytes; ++i) {
    frame.push_back(
        static_cast<char>(FrameLengthWord(bytes.size()) >> (8 * i)));
  }
  return frame + bytes;
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Gives the reader up to `most` of `bytes`, and removes these.
void Feed(FrameReader& reader, size_t most, std::string& bytes) {
  size_t fed = 0;
  for (const iovec& piece : reader.NextPieces()) {
    const size_t some =
        std::min({piece.iov_len, most - fed, bytes.size() - fed});
    if (some > 0) std::memcpy(piece.iov_base, bytes.data() + fed, some);
    fed += some;
    if (some < piece.iov_len) break;
  }
  ASSERT_GT(fed, 0u);
  reader.Received(fed);
  bytes.erase(0, fed);
}

// Gives the reader all of `bytes` in random pieces, and returns their frames.
std::vector<std::string> ReadFrames(FrameReader& reader, std::string bytes,
                                    std::mt19937_64& random) {
  std::vector<std::string> read;
  while (true) {
    auto frame = reader.Take();
    EXPECT_OK(frame);
    if (!frame.ok()) return read;
    if (frame->has_value()) {
      read.push_back(BytesOf(**frame));
      continue;
    }
    if (bytes.empty()) return read;
    Feed(reader, 1 + random() % (random() % 2 == 0 ? 10 : 50000), bytes);
  }
}

TEST(FrameReaderTest, FramesAreReadHoweverTheirBytesCome) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::string> sent;
    std::string bytes;
    for (int i = 0; i < 20; ++i) {
      const size_t most = random() % 3 == 0 ? 100000 : 40;
      std::string frame(random() % (most + 1), '\0');
      for (char& c : frame) c = static_cast<char>(random());
      bytes += FrameOf(frame);
      sent.push_back(std::move(frame));
    }
    FrameReader reader({.max_frame_bytes = kLimit});
    ASSERT_EQ(ReadFrames(reader, bytes, random), sent) << "seed " << seed;
  }
}

// A finder that has targets for random parts of each frame, whose first eight
// bytes it needs to see.
class RandomTargets : public TargetFinder {
 public:
  explicit RandomTargets(std::mt19937_64& random) : random_(random) {}

  std::optional<FrameTargets> FindTargets(absl::string_view start,
                                          size_t frame_bytes) override {
    if (start.size() < 8) return std::nullopt;
    auto memory = std::make_shared<std::string>(frame_bytes, '\0');
    FrameTargets targets;
    size_t at = 0;
    while (true) {
      at += random_() % 3 == 0 ? 0 : random_() % 5000;
      if (at >= frame_bytes || targets.parts.size() == 40) break;
      const size_t count =
          std::min<size_t>(1 + random_() % 20000, frame_bytes - at);
      targets.parts.push_back({at, count, memory->data() + at});
      at += count;
    }
    held.push_back(memory);
    targets.hold = std::move(memory);
    return targets;
  }

  std::vector<std::weak_ptr<std::string>> held;

 private:
  std::mt19937_64& random_;
};

TEST(FrameReaderTest, PartsAreReadToTheirPlacesHoweverTheyCome) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    RandomTargets finder(random);
    FrameReader reader({.max_frame_bytes = kLimit, .target_finder = &finder});
    std::vector<std::string> sent;
    std::string bytes;
    for (int i = 0; i < 6; ++i) {
      std::string frame(random() % 200000, '\0');
      for (char& c : frame) c = static_cast<char>(random());
      bytes += FrameOf(frame);
      sent.push_back(std::move(frame));
    }
    ASSERT_EQ(ReadFrames(reader, bytes, random), sent) << "seed " << seed;
    for (const auto& memory : finder.held) ASSERT_TRUE(memory.expired());
  }
}

TEST(FrameReaderTest, APlaceIsHeldAsLongAsItsFrame) {
  std::mt19937_64 random(1);
  RandomTargets finder(random);
  std::string bytes = FrameOf(std::string(100000, 'x'));
  {
    FrameReader reader({.max_frame_bytes = kLimit, .target_finder = &finder});
    while (bytes.size() > 1) {
      ASSERT_OK(reader.Take());
      Feed(reader, bytes.size() - 1, bytes);
    }
    ASSERT_EQ(finder.held.size(), 1u);
    EXPECT_FALSE(finder.held[0].expired()) << "it is being received";
    Feed(reader, 1, bytes);
    ASSERT_OK_AND_ASSIGN(const auto frame, reader.Take());
    ASSERT_TRUE(frame.has_value());
    EXPECT_FALSE(finder.held[0].expired()) << "the frame points to it";
  }
  EXPECT_TRUE(finder.held[0].expired());
  bytes = FrameOf(std::string(100000, 'x'));
  {
    FrameReader reader({.max_frame_bytes = kLimit, .target_finder = &finder});
    Feed(reader, 10000, bytes);
    ASSERT_OK(reader.Take());
    EXPECT_FALSE(finder.held[1].expired());
  }
  EXPECT_TRUE(finder.held[1].expired()) << "the reader ended before it";
}

TEST(FrameReaderTest, ASmallFrameHasNoPlaces) {
  std::mt19937_64 random(1);
  RandomTargets finder(random);
  FrameReader reader({.max_frame_bytes = kLimit, .target_finder = &finder});
  std::string bytes =
      FrameOf(std::string(FrameReader::kTargetedFrameBytes - 1, 'x'));
  while (!bytes.empty()) {
    ASSERT_OK(reader.Take());
    Feed(reader, bytes.size(), bytes);
  }
  EXPECT_TRUE(finder.held.empty());
}

TEST(FrameReaderTest, AFrameStaysInOnePiece) {
  FrameReader reader({.max_frame_bytes = kLimit});
  std::string bytes = FrameOf(std::string(300000, 'x'));
  while (!bytes.empty()) {
    ASSERT_OK_AND_ASSIGN(const auto frame, reader.Take());
    ASSERT_FALSE(frame.has_value());
    Feed(reader, 1000, bytes);
  }
  ASSERT_OK_AND_ASSIGN(const auto frame, reader.Take());
  ASSERT_TRUE(frame.has_value());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(frame->Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 1u);
}

TEST(FrameReaderTest, ALengthAboveTheLimitIsNoFrame) {
  for (const uint32_t limit : {uint32_t{kLimit} + 1, UINT32_MAX}) {
    const uint64_t length = FrameLengthWord(limit);
    FrameReader reader({.max_frame_bytes = kLimit});
    std::string bytes = FrameOf("abc");
    bytes += std::string(reinterpret_cast<const char*>(&length), 8);
    Feed(reader, bytes.size(), bytes);
    ASSERT_OK(reader.Take());
    EXPECT_THAT(reader.Take().status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the limit is 1048576")));
  }
}

TEST(FrameReaderTest, EachFlippedBitOfALengthIsSeen) {
  for (size_t bit = 0; bit < 8 * FrameReader::kLengthBytes; ++bit) {
    SCOPED_TRACE(bit);
    FrameReader reader({.max_frame_bytes = kLimit});
    std::string bytes = FrameOf("abc");
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    Feed(reader, bytes.size(), bytes);
    EXPECT_THAT(reader.Take().status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the length of a frame is damaged")));
  }
}

TEST(FrameReaderTest, AFrameCountsFromItsLengthUntilItIsTaken) {
  ReceiveAllowance allowance(1000);
  FrameReader first({.max_frame_bytes = kLimit, .allowance = &allowance});
  std::string bytes = FrameOf(std::string(900, 'x')).substr(0, 100);
  Feed(first, bytes.size(), bytes);
  ASSERT_OK(first.Take());
  EXPECT_EQ(allowance.held_bytes(), 900);
  {
    FrameReader second({.max_frame_bytes = kLimit, .allowance = &allowance});
    bytes = FrameOf(std::string(200, 'x'));
    Feed(second, bytes.size(), bytes);
    EXPECT_THAT(second.Take().status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("no room for a frame of 200 bytes")));
    FrameReader third({.max_frame_bytes = kLimit, .allowance = &allowance});
    bytes = FrameOf(std::string(50, 'x')).substr(0, 20);
    Feed(third, bytes.size(), bytes);
    ASSERT_OK(third.Take());
    EXPECT_EQ(allowance.held_bytes(), 950);
  }
  EXPECT_EQ(allowance.held_bytes(), 900) << "a reader has ended";
  bytes = std::string(808, 'x');
  while (!bytes.empty()) Feed(first, bytes.size(), bytes);
  ASSERT_OK_AND_ASSIGN(const auto frame, first.Take());
  EXPECT_TRUE(frame.has_value());
  EXPECT_EQ(allowance.held_bytes(), 0);
}

TEST(FrameReaderTest, AFrameThatIsAloneAlwaysHasRoom) {
  ReceiveAllowance allowance(10);
  FrameReader reader({.max_frame_bytes = kLimit, .allowance = &allowance});
  std::string bytes = FrameOf(std::string(100, 'x'));
  Feed(reader, bytes.size(), bytes);
  ASSERT_OK_AND_ASSIGN(const auto frame, reader.Take());
  EXPECT_TRUE(frame.has_value());
}

}  // namespace
}  // namespace parasol
