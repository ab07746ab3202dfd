#include "chief/kubeflow/https_post.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "chief/kubeflow/testing/https_stub.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Longer than any test takes: nothing waits for it.
constexpr absl::Duration kLong = absl::Minutes(5);
constexpr char kSecret[] = "old.secret";

class HttpsPostTest : public testing::Test {
 protected:
  HttpsPostTest() { WriteToken(kSecret); }

  void WriteToken(const std::string& token) {
    ASSERT_OK(WriteFileDurably(token_file_, token));
  }

  HttpsServer ServerOf(const HttpsStub& stub) const {
    return {.url = absl::StrCat("https://127.0.0.1:", stub.port(), "/status"),
            .ca_file = stub.ca_file(),
            .token_file = token_file_};
  }

  absl::Status Post(const HttpsServer& server, absl::Duration timeout = kLong) {
    return PostJson(server, R"({"a":1})", timeout, cancelled_);
  }

  const std::string token_file_ = testing::TempDir() + "/token";
  std::atomic<bool> cancelled_ = false;
};

TEST_F(HttpsPostTest, ThePostHasBodyPathAndTokenOfTheFile) {
  WriteToken(absl::StrCat(kSecret, "\n"));
  HttpsStub::Request got;
  HttpsStub stub(testing::TempDir(), [&got](const HttpsStub::Request& request) {
    got = request;
    return "200 OK";
  });
  EXPECT_OK(Post(ServerOf(stub)));
  EXPECT_EQ(got.path, "/status");
  EXPECT_EQ(got.authorization, "Bearer old.secret");
  EXPECT_EQ(got.body, R"({"a":1})");
}

TEST_F(HttpsPostTest, ATokenThatHasExpiredIsReadAgain) {
  HttpsStub stub(testing::TempDir(), [](const HttpsStub::Request& request) {
    return request.authorization == "Bearer new.secret" ? "200 OK"
                                                        : "403 Forbidden";
  });
  EXPECT_THAT(
      Post(ServerOf(stub)),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("answered 403"), Not(HasSubstr(kSecret)))));
  WriteToken("new.secret");
  EXPECT_OK(Post(ServerOf(stub)));
}

TEST_F(HttpsPostTest, OtherAnswersAreErrorsAndNoAddressIsFollowed) {
  std::string answer;
  int requests = 0;
  HttpsStub stub(testing::TempDir(), [&](const HttpsStub::Request& request) {
    ++requests;
    return answer;
  });
  for (const char* other :
       {"404 Not Found", "413 Too Large", "422 Invalid", "500 Broken",
        "302 Found\r\nLocation: /elsewhere"}) {
    answer = other;
    EXPECT_THAT(Post(ServerOf(stub)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(answer.substr(0, 3))));
  }
  EXPECT_EQ(requests, 5);
}

TEST_F(HttpsPostTest, AServerThatDoesNotAnswerIsLeftWhenTheChiefEnds) {
  // The chief ends while the server has the request.
  HttpsStub stub(
      testing::TempDir(),
      [&](const HttpsStub::Request& request) -> std::optional<std::string> {
        cancelled_ = true;
        return std::nullopt;
      });
  EXPECT_THAT(Post(ServerOf(stub)), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(HttpsPostTest, AServerThatDoesNotAnswerIsLeftAtTheLimit) {
  HttpsStub stub(
      testing::TempDir(),
      [](const HttpsStub::Request& request) -> std::optional<std::string> {
        return std::nullopt;
      });
  EXPECT_THAT(Post(ServerOf(stub), absl::Seconds(1)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HttpsPostTest, AServerThatIsGoneIsUnavailable) {
  HttpsServer server;
  {
    HttpsStub stub(testing::TempDir(),
                   [](const HttpsStub::Request& request) { return "200 OK"; });
    server = ServerOf(stub);
  }
  EXPECT_THAT(Post(server),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(server.url)));
}

TEST_F(HttpsPostTest, ATokenGoesToNoServerOfAnotherCaOrName) {
  bool was_asked = false;
  HttpsStub stub(testing::TempDir(), [&](const HttpsStub::Request& request) {
    was_asked = true;
    return "200 OK";
  });
  const std::string other = testing::TempDir() + "/other";
  ASSERT_OK(WriteFileDurably(other, ""));
  HttpsServer server = ServerOf(stub);
  server.ca_file = other;
  EXPECT_THAT(Post(server), StatusIs(absl::StatusCode::kUnavailable));
  server = ServerOf(stub);
  server.url = absl::StrCat("https://localhost:", stub.port(), "/status");
  EXPECT_THAT(Post(server), StatusIs(absl::StatusCode::kUnavailable));
  server = ServerOf(stub);
  server.url = absl::StrCat("http://127.0.0.1:", stub.port(), "/status");
  EXPECT_THAT(Post(server),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not begin with https://")));
  EXPECT_FALSE(was_asked);
}

TEST_F(HttpsPostTest, AFileThatIsNoTokenIsNotSentOrShown) {
  HttpsStub stub(testing::TempDir(),
                 [](const HttpsStub::Request& request) { return "200 OK"; });
  for (const std::string& token :
       {std::string(), std::string("two words"),
        std::string("secret\r\nHost: other"), std::string(20000, 'x')}) {
    WriteToken(token);
    EXPECT_THAT(Post(ServerOf(stub)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(token_file_), Not(HasSubstr("secret")),
                               HasSubstr("not a token"))));
  }
  HttpsServer server = ServerOf(stub);
  server.token_file += ".missing";
  EXPECT_THAT(Post(server), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr(server.token_file)));
}

}  // namespace
}  // namespace parasol
