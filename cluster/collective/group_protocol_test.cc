#include "cluster/collective/group_protocol.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/testing/contributions.h"
#include "cluster/collective/testing/simulated_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

using Fault = SimulatedGroup::Fault;

const std::optional<ReductionAlgorithm> kAlgorithms[] = {
    std::nullopt, ReductionAlgorithm::kOneRound,
    ReductionAlgorithm::kOwnerSlices, ReductionAlgorithm::kChain,
    ReductionAlgorithm::kMachines};

TEST(GroupProtocolTest, EverySeedAndLayoutGivesTheSerialSums) {
  int seed = 0;
  for (const Layout& layout : TestLayouts(5)) {
    for (const auto algorithm : kAlgorithms) {
      for (int i = 0; i < 4; ++i) {
        SCOPED_TRACE(absl::StrCat("seed ", ++seed));
        SimulatedGroup group({.layout = layout,
                              .seed = seed,
                              .packs = {0, 1, 300, 65, 1000},
                              .algorithm = algorithm});
        group.Run();
        ASSERT_EQ(group.open(), 0);
        ASSERT_EQ(group.wrong(), 0);
        ASSERT_THAT(group.errors(), IsEmpty());
      }
    }
  }
}

TEST(GroupProtocolTest, APlannersSumsAreTheSerialSums) {
  int seed = 0;
  for (const Layout& layout : TestLayouts(5)) {
    SCOPED_TRACE(absl::StrCat("seed ", ++seed));
    SimulatedGroup group({.layout = layout,
                          .seed = seed,
                          .packs = {0, 1, 300, 65, 1000},
                          .planner = OwnerSlicesPlanner()});
    group.Run();
    ASSERT_EQ(group.open(), 0);
    ASSERT_EQ(group.wrong(), 0);
    ASSERT_THAT(group.errors(), IsEmpty());
  }
}

// Writes behind the end of the sums.
class WrongPlanner : public AllReducePlanner {
 public:
  std::string name() const override { return "wrong"; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    const int sums = static_cast<int>(reduction.layout[rank].size());
    CollectivePlan plan;
    plan.Receive(1 - rank, 0, {sums, reduction.count * sizeof(float), 4});
    return plan;
  }
};

TEST(GroupProtocolTest, APlanThatCannotBeCarriedOutEndsTheGroup) {
  SimulatedGroup group({.layout = {{0}, {1}},
                        .packs = {10},
                        .planner = std::make_shared<WrongPlanner>()});
  group.Run();
  EXPECT_EQ(group.open(), 0);
  EXPECT_THAT(
      group.errors(),
      Each(StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr("all-reduce wrong of 10 elements: step 0"))));
  EXPECT_THAT(group.errors(), SizeIs(2));
}

TEST(GroupProtocolTest, LargePiecesWaitForTheirReceiver) {
  // Pieces of 256 bytes are eager: a few thousand of them are more than a rank
  // holds for one that has begun nothing.
  SimulatedGroup group({.layout = {{0}, {1}},
                        .packs = std::vector<size_t>(40, 40000),
                        .algorithm = ReductionAlgorithm::kOwnerSlices});
  group.Run();
  EXPECT_EQ(group.open(), 0);
  EXPECT_EQ(group.wrong(), 0);
}

// Strikes each rank after each number of events, and expects `check` of what
// comes of it.
template <typename Check>
void StrikeEverywhere(Fault fault, const Check& check) {
  const Layout layout = {{0, 3}, {1}, {2, 4}};
  for (const auto algorithm : kAlgorithms) {
    SimulatedGroup::Options options = {.layout = layout,
                                       .seed = 11,
                                       .packs = {70, 130},
                                       .algorithm = algorithm};
    SimulatedGroup undisturbed(options);
    undisturbed.Run();
    ASSERT_THAT(undisturbed.errors(), IsEmpty());
    for (int victim = 0; victim < 3; ++victim) {
      for (int after = 0; after <= undisturbed.events(); ++after) {
        SCOPED_TRACE(absl::StrCat("rank ", victim, " after ", after));
        options.fault = {.fault = fault, .victim = victim, .after = after};
        SimulatedGroup group(options);
        group.Run();
        ASSERT_EQ(group.open(), 0);
        ASSERT_EQ(group.wrong(), 0);
        ASSERT_LE(group.duration(), absl::Seconds(3));
        check(group, victim);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

void ExpectNamed(const SimulatedGroup& group, int victim) {
  for (const absl::Status& error : group.errors()) {
    EXPECT_THAT(error,
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr(absl::StrCat("rank ", victim, " ("))));
    EXPECT_EQ(LostRank(error), victim);
  }
}

TEST(GroupProtocolTest, ARankKilledAnywhereIsNamedToTheOthers) {
  StrikeEverywhere(Fault::kKill, ExpectNamed);
}

TEST(GroupProtocolTest, ARankStoppedAnywhereIsNamedWithinThreeSeconds) {
  StrikeEverywhere(Fault::kStop, ExpectNamed);
}

TEST(GroupProtocolTest, ARankThatGoesOnTooLateLearnsThatItWasLost) {
  const Layout layout = {{0}, {1}, {2}};
  SimulatedGroup::Options options = {
      .layout = layout, .seed = 3, .packs = {70, 130, 500}};
  SimulatedGroup undisturbed(options);
  undisturbed.Run();
  for (int after = 0; after < undisturbed.events(); ++after) {
    SCOPED_TRACE(after);
    options.fault = {
        .fault = Fault::kStopThenGoOn, .victim = 1, .after = after};
    SimulatedGroup group(options);
    group.Run();
    ASSERT_EQ(group.open(), 0);
    ASSERT_EQ(group.wrong(), 0);
    ExpectNamed(group, 1);
  }
}

TEST(GroupProtocolTest, AFlippedBitAnywhereIsALoss) {
  StrikeEverywhere(Fault::kFlip, [](const SimulatedGroup& group, int) {
    for (const absl::Status& error : group.errors()) {
      EXPECT_THAT(error, StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("no message of the group")));
      EXPECT_NE(LostRank(error), std::nullopt);
    }
  });
}

TEST(GroupProtocolTest, AnAbortAnywhereReachesAllWithItsReason) {
  StrikeEverywhere(Fault::kAbort, [](const SimulatedGroup& group, int victim) {
    EXPECT_THAT(group.errors(),
                Each(StatusIs(absl::StatusCode::kDataLoss, "not a number")));
  });
}

// A rank alone with what others send.
class HostilePeerTest : public testing::Test {
 protected:
  HostilePeerTest() : protocol_(Group(), {}, absl::UnixEpoch()) {}

  static CollectiveGroup Group() {
    CollectiveGroup group;
    group.epoch = 7;
    group.ranks = {{"a:1", {0}}, {"b:2", {1}}};
    return group;
  }
  static FrameHeader Header(FrameKind kind, uint64_t sequence, uint64_t bytes) {
    return {.kind = kind, .epoch = 7, .sequence = sequence, .bytes = bytes};
  }
  // Sends `bytes` as rank 1.
  void Send(FrameHeader header, const std::string& bytes) {
    header.bytes = bytes.size();
    if (header.kind != FrameKind::kPiece) header.check = Crc32cOf(bytes);
    std::byte* const target = protocol_.OnHeader(1, header);
    if (target == nullptr) return;
    std::memcpy(target, bytes.data(), bytes.size());
    protocol_.OnBytes(1, header);
  }
  void BeginSum(size_t count) {
    sum_.resize(count);
    values_.resize(count);
    OperationSpec spec;
    spec.size = count;
    protocol_.Begin(
        spec, {.contributions = {{0, values_}}, .sum = absl::MakeSpan(sum_)},
        [](const absl::Status&) {});
  }
  void ExpectNonsense() {
    EXPECT_THAT(protocol_.status(),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("rank 1 (b:2) was lost: it has sent what is "
                                   "no message of the group")));
    EXPECT_EQ(LostRank(protocol_.status()), 1);
  }

  std::vector<float> sum_, values_;
  GroupProtocol protocol_;
};

TEST_F(HostilePeerTest, PiecesOfOperationsThatItHasNotBegunAreRefused) {
  Send(Header(FrameKind::kPiece, 0, 4), "1234");
  ExpectNonsense();
}

TEST_F(HostilePeerTest, OperationsOutOfOrderAreRefused) {
  Send(Header(FrameKind::kBegin, 3, 0), OperationSpec().Encode());
  ExpectNonsense();
}

TEST_F(HostilePeerTest, WhatIsNoOperationIsRefused) {
  Send(Header(FrameKind::kBegin, 0, 0),
       std::string(OperationSpec::kBytes, '\xff'));
  ExpectNonsense();
}

TEST_F(HostilePeerTest, MorePiecesThanARankMaySendAheadAreRefused) {
  OperationSpec spec;
  spec.size = 1 << 24;
  Send(Header(FrameKind::kBegin, 0, 0), spec.Encode());
  const std::string piece(GroupProtocol::kEagerBytes, 'x');
  for (size_t sent = 0; sent < GroupProtocol::kMaxEarlyBytes;
       sent += piece.size()) {
    Send(Header(FrameKind::kPiece, 0, 0), piece);
  }
  EXPECT_OK(protocol_.status());
  Send(Header(FrameKind::kPiece, 0, 0), piece);
  ExpectNonsense();
}

// What a rank sends rank 1 before and after that has begun the sum.
class EagerPiecesTest : public HostilePeerTest {
 protected:
  struct Sent {
    std::vector<uint64_t> before, after;  // numbers of pieces
  };

  // Sums `chunks` chunks of `chunk_bytes` bytes in one round.
  static Sent SumOf(size_t chunks, size_t chunk_bytes) {
    GroupProtocol::Options options;
    options.chunk_bytes = chunk_bytes;
    options.algorithm = ReductionAlgorithm::kOneRound;
    GroupProtocol protocol(Group(), options, absl::UnixEpoch());
    OperationSpec spec;
    spec.size = chunks * chunk_bytes / sizeof(float);
    std::vector<float> values(spec.size), sum(spec.size);
    protocol.Begin(spec,
                   {.contributions = {{0, values}}, .sum = absl::MakeSpan(sum)},
                   [](const absl::Status&) {});
    Sent sent;
    sent.before = PiecesOf(protocol);
    spec.algorithm = *options.algorithm;
    spec.chunk_bytes = chunk_bytes;
    const std::string begin = spec.Encode();
    FrameHeader header = Header(FrameKind::kBegin, 0, begin.size());
    header.check = Crc32cOf(begin);
    std::memcpy(protocol.OnHeader(1, header), begin.data(), begin.size());
    protocol.OnBytes(1, header);
    EXPECT_OK(protocol.status());
    sent.after = PiecesOf(protocol);
    return sent;
  }

 private:
  static std::vector<uint64_t> PiecesOf(GroupProtocol& protocol) {
    std::vector<uint64_t> pieces;
    for (const GroupProtocol::Frame& frame : protocol.TakeFrames()) {
      if (frame.header.kind == FrameKind::kPiece) {
        pieces.push_back(frame.header.piece);
      }
    }
    return pieces;
  }
};

TEST_F(EagerPiecesTest, ALargePieceWaitsForItsReceiver) {
  const Sent sent = SumOf(2, GroupProtocol::kEagerBytes + 64);
  EXPECT_THAT(sent.before, IsEmpty());
  EXPECT_THAT(sent.after, ElementsAre(0, 1));
}

TEST_F(EagerPiecesTest, NoMoreLeaveThanTheReceiverKeepsAndTheRestInOrder) {
  const Sent sent = SumOf(7, GroupProtocol::kEagerBytes);
  EXPECT_THAT(sent.before, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sent.after, ElementsAre(4, 5, 6));
}

TEST_F(HostilePeerTest, PiecesOfTheWrongSizeAreRefused) {
  BeginSum(100);
  Send(Header(FrameKind::kPiece, 0, 0), std::string(404, 'x'));
  ExpectNonsense();
}

TEST_F(HostilePeerTest, BytesWithAnotherChecksumAreRefused) {
  const std::string begin = OperationSpec().Encode();
  const std::string abort = EncodeAbort(absl::InvalidArgumentError("x"));
  for (const auto& [kind, bytes] : {std::pair(FrameKind::kBegin, begin),
                                    std::pair(FrameKind::kAbort, abort)}) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      SCOPED_TRACE(bit);
      GroupProtocol protocol(Group(), {}, absl::UnixEpoch());
      FrameHeader header = Header(kind, 0, bytes.size());
      header.check = Crc32cOf(bytes);
      std::string damaged = bytes;
      damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
      std::memcpy(protocol.OnHeader(1, header), damaged.data(), damaged.size());
      protocol.OnBytes(1, header);
      EXPECT_THAT(protocol.status(), StatusIs(absl::StatusCode::kUnavailable,
                                              HasSubstr("rank 1 (b:2)")));
    }
  }
}

TEST_F(HostilePeerTest, GatheredBytesWithAnotherChecksumAreRefused) {
  const std::string bytes = "step 12";
  for (const bool is_damaged : {false, true}) {
    GroupProtocol protocol(Group(), {}, absl::UnixEpoch());
    OperationSpec spec;
    spec.kind = OperationKind::kAllGather;
    std::vector<std::string> gathered;
    absl::Status ended;
    protocol.Begin(spec, {.own = "", .gathered = &gathered},
                   [&](const absl::Status& status) { ended = status; });
    spec.own_bytes = bytes.size();
    spec.check = CheckOf(bytes);
    spec.chunk_bytes = protocol.options().chunk_bytes;
    const std::string begin = spec.Encode();
    FrameHeader header = Header(FrameKind::kBegin, 0, begin.size());
    header.check = Crc32cOf(begin);
    std::memcpy(protocol.OnHeader(1, header), begin.data(), begin.size());
    protocol.OnBytes(1, header);
    header = Header(FrameKind::kPiece, 0, bytes.size());
    std::byte* const target = protocol.OnHeader(1, header);
    ASSERT_NE(target, nullptr);
    std::memcpy(target, bytes.data(), bytes.size());
    if (is_damaged) target[6] ^= std::byte{1};
    protocol.OnBytes(1, header);
    EXPECT_EQ(protocol.status().ok(), !is_damaged) << protocol.status();
    EXPECT_EQ(LostRank(protocol.status()),
              is_damaged ? std::optional(1) : std::nullopt);
    EXPECT_THAT(protocol.TakeCompletions(), SizeIs(1));
  }
}

TEST_F(HostilePeerTest, AnAbortWithoutAReasonIsOne) {
  Send(Header(FrameKind::kAbort, 0, 0), "");
  EXPECT_THAT(protocol_.status(), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(HostilePeerTest, AnAbortNamesNoRankThatIsNotThere) {
  Send(Header(FrameKind::kAbort, 0, 0),
       EncodeAbort(WithLostRank(absl::UnavailableError("x"), 5)));
  EXPECT_EQ(LostRank(protocol_.status()), std::nullopt);
}

TEST_F(HostilePeerTest, AReadyForNothingIsIgnored) {
  Send(Header(FrameKind::kReady, 99, 0), "");
  EXPECT_OK(protocol_.status());
}

TEST(FrameHeaderTest, HeadersOfOthersAreRefused) {
  FrameHeader header = {.kind = FrameKind::kPiece,
                        .epoch = 7,
                        .sequence = 1,
                        .piece = 2,
                        .bytes = 3};
  auto encoded = header.Encode();
  ASSERT_OK_AND_ASSIGN(const FrameHeader parsed,
                       FrameHeader::Parse(encoded.data(), 7));
  EXPECT_EQ(parsed.piece, 2);
  EXPECT_EQ(parsed.bytes, 3);
  EXPECT_THAT(FrameHeader::Parse(encoded.data(), 8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("epoch 7 in a group of epoch 8")));
  header.bytes = FrameHeader::kMaxPieceBytes + 1;
  encoded = header.Encode();
  EXPECT_THAT(FrameHeader::Parse(encoded.data(), 7),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 16777216")));
  header.kind = static_cast<FrameKind>(99);
  encoded = header.Encode();
  EXPECT_THAT(FrameHeader::Parse(encoded.data(), 7),
              StatusIs(absl::StatusCode::kInvalidArgument));
  encoded[0] = 'G';
  EXPECT_THAT(FrameHeader::Parse(encoded.data(), 7),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PCL3")));
}

TEST(FrameHeaderTest, EachFlippedBitIsSeen) {
  const FrameHeader header = {.kind = FrameKind::kPiece,
                              .epoch = 7,
                              .sequence = 1,
                              .piece = 2,
                              .bytes = 3,
                              .check = 4};
  for (size_t bit = 0; bit < 8 * FrameHeader::kBytes; ++bit) {
    SCOPED_TRACE(bit);
    auto encoded = header.Encode();
    encoded[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THAT(FrameHeader::Parse(encoded.data(), 7),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace parasol
