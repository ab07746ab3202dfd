#include "ps/journal/push_record.h"

#include <string>
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

}  // namespace
}  // namespace parasol
