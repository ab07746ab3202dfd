#include "ps/journal/push_record.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

TEST(PushRecordTest, APushComesBackOutOfItsRecordAndOutOfNoPartOfIt) {
  const wire::Operation operation =
      OperationOf(MakePush(9, {MakeRange(0, 0, 2)}));
  const std::string gradient = Floats(2, .5), nothing;
  const std::vector<PayloadView> payloads = {ViewOf(gradient), ViewOf(nothing)};
  const PushRecord record({.worker_incarnation = 7,
                           .operation = operation,
                           .payloads = payloads,
                           .acknowledged = 8});
  std::string bytes;
  for (const absl::string_view piece : record.pieces()) {
    bytes.append(piece.data(), piece.size());
  }
  const auto push = ParsePushRecord(bytes);
  ASSERT_OK(push);
  EXPECT_EQ(push->worker_incarnation, 7u);
  EXPECT_EQ(push->acknowledged, 8u);
  EXPECT_EQ(push->operation.push().sequence(), 9u);
  ASSERT_EQ(push->payloads.size(), 2u);
  std::string read(gradient.size(), '\0');
  ASSERT_EQ(push->payloads[0].size(), read.size());
  push->payloads[0].CopyTo(0, read.size(), read.data());
  EXPECT_EQ(read, gradient);
  EXPECT_EQ(push->payloads[1].size(), 0u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ParsePushRecord(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss))
        << size;
  }
  EXPECT_THAT(ParsePushRecord(bytes + "x"),
              StatusIs(absl::StatusCode::kDataLoss));
}

// A message's memory, as a test keeps it.
class Memory : public PayloadMemory {
 public:
  Memory(std::string bytes, size_t others)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))),
        others_(others) {}
  std::shared_ptr<const void> Keep() override { return bytes_; }
  size_t bytes() const override { return bytes_->size() + others_; }
  PayloadView view(bool may_change = false) const {
    return PayloadView(PayloadView::Pieces{*bytes_}, may_change);
  }
  bool Holds(const FollowRecord& record) const {
    return record.tensors[0].data == bytes_->data();
  }

 private:
  const std::shared_ptr<const std::string> bytes_;
  const size_t others_;
};

FollowRecord RecordOf(const PayloadView& payload, PayloadMemory* memory) {
  const wire::Operation operation =
      OperationOf(MakePush(9, {MakeRange(0, 0, 2)}));
  const std::vector<PayloadView> payloads = {payload};
  return RecordToSend({.worker_incarnation = 7,
                       .operation = operation,
                       .payloads = payloads,
                       .memory = memory});
}

TEST(PushRecordTest, ARecordKeepsTheMemoryThatItNeedsAndNoOther) {
  Memory large(std::string(100000, 'x'), 0),
      shared(std::string(100000, 'x'), 0),
      mostly_others(std::string(100000, 'x'), 200000),
      small(std::string(1000, 'x'), 0);
  EXPECT_TRUE(large.Holds(RecordOf(large.view(), &large)));
  EXPECT_FALSE(large.Holds(RecordOf(large.view(), nullptr)));
  EXPECT_FALSE(shared.Holds(RecordOf(shared.view(true), &shared)))
      << "the peer can write there";
  EXPECT_FALSE(
      mostly_others.Holds(RecordOf(mostly_others.view(), &mostly_others)));
  EXPECT_FALSE(small.Holds(RecordOf(small.view(), &small)));
}

TEST(PushRecordTest, APayloadInPiecesIsSentAsOne) {
  const std::string first(50000, 'a'), second(50000, 'b');
  Memory memory(first, 0);
  const PayloadView payload(PayloadView::Pieces{first, second});
  const FollowRecord record = RecordOf(payload, &memory);
  ASSERT_EQ(record.tensors.size(), 1u);
  EXPECT_EQ(absl::string_view(static_cast<const char*>(record.tensors[0].data),
                              record.tensors[0].size),
            first + second);
}

TEST(PushRecordTest, AHeadComesBackWithItsPayloadsAndNoOthers) {
  const std::string gradient(1000, 'g'), next(10, 'n');
  const FollowRecord record = RecordOf(ViewOf(gradient), nullptr);
  const std::vector<PayloadView> tensors = {ViewOf(gradient), ViewOf(next)};
  absl::Span<const PayloadView> left = tensors;
  const auto push = ParsePushHead(record.head, left);
  ASSERT_OK(push);
  EXPECT_EQ(push->worker_incarnation, 7u);
  ASSERT_EQ(push->payloads.size(), 1u);
  EXPECT_EQ(push->payloads[0].size(), gradient.size());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_THAT(ParsePushHead(record.head, left),
              StatusIs(absl::StatusCode::kDataLoss))
      << "of another size";
  left = {};
  EXPECT_THAT(ParsePushHead(record.head, left),
              StatusIs(absl::StatusCode::kDataLoss))
      << "none is left";
  left = tensors;
  EXPECT_THAT(ParsePushHead(record.head + "x", left),
              StatusIs(absl::StatusCode::kDataLoss));
  for (size_t size = 0; size < record.head.size(); ++size) {
    left = tensors;
    EXPECT_THAT(ParsePushHead(record.head.substr(0, size), left),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

}  // namespace
}  // namespace parasol
