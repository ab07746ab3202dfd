#include "ps/exchange/pending_responses.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "cluster/rpc/protocol_limits.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// A pull's result of so many bytes, which are nowhere.
OperationResult Pulled(size_t bytes) {
  OperationResult result;
  result.payloads.push_back({.data = nullptr, .size = bytes, .owner = nullptr});
  return result;
}

TEST(PendingResponsesTest, AResultCarriesWhatBecameOfItsOperation) {
  PendingResponses pending;
  OperationResult result = Pulled(5);
  result.payloads.push_back({.data = nullptr, .size = 6, .owner = nullptr});
  result.duplicate = result.stale = true;
  result.min_updates = 3;
  result.max_updates = 4;
  pending.Add(9, std::move(result));
  pending.Add(8, absl::NotFoundError("no such part"));
  EXPECT_EQ(pending.results(), 2u);
  EXPECT_EQ(pending.payload_bytes(), 11u);

  const PendingResponses::Message message = pending.Take();
  ASSERT_EQ(message.header->result_size(), 2);
  const wire::Result& done = message.header->result(0);
  EXPECT_EQ(done.id(), 9u);
  EXPECT_EQ(done.code(), 0);
  EXPECT_TRUE(done.duplicate());
  EXPECT_TRUE(done.stale());
  EXPECT_EQ(done.min_updates(), 3);
  EXPECT_EQ(done.max_updates(), 4);
  EXPECT_EQ(done.payload_bytes(), 11u);
  EXPECT_EQ(message.payloads.size(), 2u);
  const wire::Result& failed = message.header->result(1);
  EXPECT_EQ(failed.id(), 8u);
  EXPECT_EQ(failed.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(failed.message(), "no such part");
  EXPECT_EQ(pending.results(), 0u);
  EXPECT_EQ(pending.payload_bytes(), 0u);
}

TEST(PendingResponsesTest, ALongErrorIsCutBetweenCharacters) {
  std::string message;
  while (message.size() < 2000) message += "\u20ac";  // 3 bytes; 512 is none's
  PendingResponses pending;
  pending.Add(1, absl::NotFoundError(message));
  const std::string sent = pending.Take().header->SerializeAsString();
  wire::ResponseHeader received;
  ASSERT_TRUE(received.ParseFromString(sent));
  EXPECT_EQ(received.result(0).message(), message.substr(0, 510));
}

TEST(PendingResponsesTest, AMessageHasAsManyResultsAsItsSizeAllows) {
  PendingResponses pending;
  const size_t half = PendingResponses::kResponseBytes / 2;
  for (const size_t bytes : {half, half, half, 3 * half, half}) {
    pending.Add(1, Pulled(bytes));
  }
  for (const int results : {2, 1, 1, 1}) {
    EXPECT_EQ(pending.Take().header->result_size(), results);
  }
}

TEST(PendingResponsesTest, AMessageOfErrorsStaysWithinTheHeadersLimit) {
  PendingResponses pending;
  for (size_t i = 0; i <= PendingResponses::kResponseResults; ++i) {
    pending.Add(UINT64_MAX, absl::InvalidArgumentError(std::string(9999, 'x')));
  }
  const wire::ResponseHeader& header = *pending.Take().header;
  EXPECT_EQ(header.result_size(),
            static_cast<int>(PendingResponses::kResponseResults));
  EXPECT_LT(header.ByteSizeLong(), kMaxHeaderBytes);
  EXPECT_EQ(pending.results(), 1u);
}

}  // namespace
}  // namespace parasol
