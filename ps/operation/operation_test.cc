#include "ps/operation/operation.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gtest/gtest.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// A pull, a push of two ranges, a push and a pull of rows.
wire::RequestHeader FourOperations() {
  wire::RequestHeader header;
  *header.add_operation()->mutable_pull() = MakePull({MakeRange(0, 0, 5)});
  *header.add_operation()->mutable_push() =
      MakePush(1, {MakeRange(0, 0, 5), MakeRange(1, 0, 5)});
  header.add_operation()->mutable_row_push()->set_rows(3);
  header.add_operation()->mutable_row_pull()->set_rows(3);
  return header;
}

TEST(ReceivedRequestTest, EachOperationHasItsOwnPayloads) {
  std::vector<std::string> bytes;
  for (size_t size = 1; size <= 5; ++size) bytes.emplace_back(size, 'x');
  std::vector<PayloadView> payloads;
  for (const std::string& b : bytes) payloads.push_back(ViewOf(b));
  const wire::RequestHeader header = FourOperations();
  ASSERT_OK_AND_ASSIGN(const ReceivedMessage request,
                       ReceivedMessage::Create(header, payloads));
  ASSERT_EQ(request.size(), 4u);
  size_t next = 1;
  for (size_t i = 0; i < request.size(); ++i) {
    for (const PayloadView& payload : request.payloads(i)) {
      EXPECT_EQ(payload.size(), next++);
    }
  }
  EXPECT_EQ(request.payloads(0).size(), 0u);
  EXPECT_EQ(request.payloads(1).size(), 2u);
  EXPECT_EQ(request.payloads(2).size(), 2u);
  EXPECT_EQ(request.payloads(3).size(), 1u);
}

TEST(ReceivedRequestTest, PayloadsThatDoNotMatchTheOperationsAreRefused) {
  const wire::RequestHeader header = FourOperations();
  for (const size_t payloads : {0, 4, 6}) {
    EXPECT_THAT(
        ReceivedMessage::Create(header, std::vector<PayloadView>(payloads)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("payloads, not 5")));
  }
}

TEST(ReceivedRequestTest, TooManyOperationsAreRefused) {
  wire::RequestHeader header;
  for (size_t i = 0; i < kMaxOperationsPerMessage; ++i) header.add_operation();
  EXPECT_OK(ReceivedMessage::Create(header, {}));
  header.add_operation();
  EXPECT_THAT(ReceivedMessage::Create(header, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1025 operations")));
}

}  // namespace
}  // namespace parasol
