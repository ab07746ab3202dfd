#include "cluster/rpc/status.h"

#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(StatusTest, EveryCodeSurvivesTheWay) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent(static_cast<absl::StatusCode>(code), "no such run");
    EXPECT_THAT(FromGrpcStatus(ToGrpcStatus(sent), "ps/0 at h:1"),
                StatusIs(sent.code(), "ps/0 at h:1: no such run"));
  }
  EXPECT_OK(FromGrpcStatus(ToGrpcStatus(absl::OkStatus()), "ps/0"));
}

TEST(StatusTest, ALongMessageIsCutBetweenCharacters) {
  std::string message;
  while (message.size() < 100000) message += "ä€";
  const std::string cut =
      ToGrpcStatus(absl::InternalError(message)).error_message();
  EXPECT_LE(cut.size(), 2048u);
  EXPECT_GE(cut.size(), 2040u);
  EXPECT_EQ(message.substr(0, cut.size()), cut);
  EXPECT_NE(message[cut.size()] & 0xC0, 0x80);
}

}  // namespace
}  // namespace parasol
