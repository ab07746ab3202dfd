#include "ml/input/web/web_client.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/web/testing/web_server.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::StatusCode kPasses = absl::StatusCode::kUnavailable;
constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;

// Limits that a test can wait for.
constexpr WebClient::Limits kShort = {.connect = absl::Seconds(5),
                                      .silence = absl::Seconds(1)};

struct Got {
  absl::Status status;
  int code = 0;  // status of the answer
  std::string bytes;
};

class WebClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_server_ = new WebServer("web");
    shared_server_->Put("x", "0123456789");
  }
  static void TearDownTestSuite() { delete shared_server_; }
  void SetUp() override {
    unsetenv("SSL_CERT_FILE");
    server_.SetFaults({});
  }

  static Got Get(const std::string& url, const std::string& range = "",
                 WebClient::Limits limits = kShort) {
    Got got;
    const auto client = WebClient::Create(limits);
    const auto parts = ParseWebUrl(url);
    EXPECT_OK(client.status());
    EXPECT_OK(parts.status());
    if (!client.ok() || !parts.ok()) return got;
    got.status =
        (*client)->Get({.url = *parts, .range = range, .if_range = ""},
                       [&](const WebAnswer& answer,
                           absl::string_view bytes) -> absl::StatusOr<bool> {
                         got.code = answer.status();
                         absl::StrAppend(&got.bytes, bytes);
                         return true;
                       });
    return got;
  }

  Got GetWithFault(const std::string& fault) const {
    server_.SetFaults({absl::StrCat(
        R"({"request": "GET /x", "times": -1, "do": ")", fault, "}")});
    return Get(server_.Url("x"));
  }

  // One for all cases, for it takes a while to start.
  static inline WebServer* shared_server_ = nullptr;
  const WebServer& server_ = *shared_server_;
};

TEST_F(WebClientTest, AFileOrAPartOfItComes) {
  const Got whole = Get(server_.Url("x"));
  EXPECT_OK(whole.status);
  EXPECT_EQ(whole.code, 200);
  EXPECT_EQ(whole.bytes, "0123456789");
  const Got part = Get(server_.Url("x?v=1"), "2-4");
  EXPECT_OK(part.status);
  EXPECT_EQ(part.code, 206);
  EXPECT_EQ(part.bytes, "234");
  const Got behind = Get(server_.Url("x"), "10-10");
  EXPECT_OK(behind.status);
  EXPECT_EQ(behind.code, 416);
  EXPECT_EQ(behind.bytes, "");
}

TEST_F(WebClientTest, ConnectionsAreKeptAndAnAnswerMayBeLeft) {
  ASSERT_OK_AND_ASSIGN(const auto client, WebClient::Create(kShort));
  ASSERT_OK_AND_ASSIGN(const WebUrl url, ParseWebUrl(server_.Url("x")));
  for (const bool goes_on : {true, false, true, false, false, true}) {
    int calls = 0;
    EXPECT_OK(client->Get(
        {.url = url, .range = "", .if_range = ""},
        [&](const WebAnswer&, absl::string_view) -> absl::StatusOr<bool> {
          ++calls;
          return goes_on;
        }));
    EXPECT_EQ(calls, goes_on ? 2 : 1);
  }
  EXPECT_THAT(client->Get({.url = url, .range = "", .if_range = ""},
                          [](const WebAnswer&,
                             absl::string_view) -> absl::StatusOr<bool> {
                            return absl::DataLossError("mine");
                          }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("mine")));
}

TEST_F(WebClientTest, WhatTheServerRefusesSaysWhatToDo) {
  const std::vector<
      std::pair<std::string, std::pair<absl::StatusCode, std::string>>>
      cases = {{"404", {absl::StatusCode::kNotFound, "no such file"}},
               {"410", {absl::StatusCode::kNotFound, "no such file"}},
               {"401", {absl::StatusCode::kPermissionDenied, "bring it to"}},
               {"403", {absl::StatusCode::kPermissionDenied, "bring it to"}},
               {"400", {kRefused, "answers 400"}},
               {"204", {kRefused, "answers 204"}},
               {"304", {kRefused, "answers 304"}},
               {"999", {kPasses, "answers 999"}},
               {"503", {kPasses, "answers 503"}},
               {"429", {kPasses, "answers 429"}},
               {"500", {kPasses, "answers 500"}}};
  for (const auto& [fault, expected] : cases) {
    EXPECT_THAT(GetWithFault(fault + "\"").status,
                StatusIs(expected.first, AllOf(HasSubstr(server_.Url("x: ")),
                                               HasSubstr(expected.second))))
        << fault;
  }
}

TEST_F(WebClientTest, ABusyServerSaysWhenToComeAgain) {
  EXPECT_EQ(WebClient::WaitOf(GetWithFault(R"(503", "retry_after": 7)").status),
            absl::Seconds(7));
  EXPECT_EQ(
      WebClient::WaitOf(GetWithFault(R"(429", "retry_after": "Fri, 01 Jan 2100)"
                                     R"( 00:00:00 GMT")")
                            .status) > absl::Hours(24),
      true);
  for (const char* wait : {"-7", "\"soon\"", "\"\""}) {
    EXPECT_EQ(WebClient::WaitOf(
                  GetWithFault(absl::StrCat(R"(503", "retry_after": )", wait))
                      .status),
              absl::ZeroDuration());
  }
  EXPECT_EQ(WebClient::WaitOf(absl::OkStatus()), absl::ZeroDuration());
}

TEST_F(WebClientTest, WhatIsCutShortMayBeTriedAgain) {
  for (const char* fault :
       {"cut\"", "reset\"", "garbage\"", R"(huge", "bytes": 1000000000000000)",
        R"(hang", "seconds": 0)", R"(head", "seconds": 0)",
        R"(huge", "bytes": "-5")", R"(huge", "bytes": "99999999999999999999")",
        R"(huge", "bytes": "x")"}) {
    EXPECT_THAT(GetWithFault(fault).status,
                StatusIs(kPasses, HasSubstr(server_.Url("x: "))))
        << fault;
  }
}

// The server is alive, and the wait ends all the same.
TEST_F(WebClientTest, WhatIsTooSlowEndsAndNamesTheHost) {
  const std::string host = "127.0.0.1:" + server_.port();
  for (const char* fault :
       {R"(hang", "seconds": 600)", R"(slow", "bytes": 1, "seconds": 0.4)",
        R"(head", "seconds": 0.4)"}) {
    EXPECT_THAT(
        GetWithFault(fault).status,
        StatusIs(kPasses, HasSubstr(absl::StrCat(host, " is too slow"))))
        << fault;
  }
}

TEST_F(WebClientTest, RedirectsAreFollowedToWhereTheyMayLead) {
  const auto redirected = [&](const std::string& to) {
    server_.SetFaults({absl::StrCat(
        R"({"request": "GET /from", "times": -1, "do": "redirect", "to": ")",
        to, "\"}")});
    return Get(server_.Url("from?v=hidden"), "0-1");
  };
  for (const std::string& to :
       {server_.Url("x"), std::string("/x"), std::string("x?token=hidden")}) {
    const Got got = redirected(to);
    EXPECT_OK(got.status) << to;
    EXPECT_EQ(got.bytes, "01") << to;
  }
  for (const char* to :
       {"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/",
        "data:,x", "HTTPX://h/x", "javascript:x"}) {
    EXPECT_THAT(redirected(to).status,
                StatusIs(kRefused,
                         AllOf(HasSubstr("refused"), Not(HasSubstr("hidden")))))
        << to;
  }
  EXPECT_THAT(redirected("/from").status,
              StatusIs(kRefused, HasSubstr("more than 10 times")));
  EXPECT_THAT(Get(server_.Url("from?v=hidden")).status,
              StatusIs(kRefused, Not(HasSubstr("hidden"))));
  EXPECT_THAT(redirected("http://me:hidden@127.0.0.1/x").status,
              StatusIs(kRefused, Not(HasSubstr("hidden"))));
  EXPECT_THAT(redirected("/gone?token=hidden").status,
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("/from?…"), Not(HasSubstr("hidden")))));
  EXPECT_THAT(redirected("http://127.0.0.1:1/x?token=hidden").status,
              StatusIs(kPasses, AllOf(HasSubstr("redirected to 127.0.0.1:1"),
                                      Not(HasSubstr("hidden")))));
  EXPECT_THAT(redirected("").status, StatusIs(kRefused, HasSubstr("from?…")));
}

TEST_F(WebClientTest, AServerThatIsNotThereIsNamed) {
  EXPECT_THAT(
      Get("http://127.0.0.1:1/x?v=hidden").status,
      StatusIs(kPasses, AllOf(HasSubstr("http://127.0.0.1:1/x?…"),
                              HasSubstr("connect"), Not(HasSubstr("hidden")))));
  EXPECT_THAT(Get("http://no-host.invalid/x").status,
              StatusIs(kPasses, HasSubstr("no-host.invalid")));
}

TEST_F(WebClientTest, CertificatesAreAlwaysVerified) {
  const WebServer secure("secure", "IP:127.0.0.1");
  secure.Put("x", "secret things");
  EXPECT_THAT(Get(secure.Url("x")).status,
              StatusIs(kRefused, AllOf(HasSubstr("certificate"),
                                       HasSubstr("SSL_CERT_FILE"))));
  setenv("SSL_CERT_FILE", secure.Authority().c_str(), 1);
  const Got got = Get(secure.Url("x"), "0-5");
  EXPECT_OK(got.status);
  EXPECT_EQ(got.bytes, "secret");
  const WebServer other("other_name", "DNS:other.example");
  other.Put("x", "x");
  EXPECT_THAT(Get(other.Url("x")).status,
              StatusIs(kRefused, HasSubstr("cert")));
  setenv("SSL_CERT_FILE", other.Authority().c_str(), 1);
  EXPECT_THAT(Get(other.Url("x")).status,
              StatusIs(kRefused, HasSubstr("127.0.0.1")));
  setenv("SSL_CERT_FILE", "/no/such/file", 1);
  EXPECT_THAT(Get(secure.Url("x")).status,
              StatusIs(kRefused, HasSubstr("/no/such/file")));
}

TEST_F(WebClientTest, NobodyLeadsFromTlsToPlainText) {
  const WebServer secure("secure", "IP:127.0.0.1");
  setenv("SSL_CERT_FILE", secure.Authority().c_str(), 1);
  secure.SetFaults({absl::StrCat(
      R"({"request": "GET /x", "times": -1, "do": "redirect", "to": ")",
      server_.Url("x"), "\"}")});
  server_.ForgetRequests();
  EXPECT_THAT(Get(secure.Url("x")).status,
              StatusIs(kRefused, AllOf(HasSubstr("without TLS"),
                                       HasSubstr(server_.port()))));
  EXPECT_THAT(server_.Requests(""), SizeIs(0));
  // The other way there is nothing to lose.
  server_.SetFaults(
      {absl::StrCat(R"({"request": "GET /y", "do": "redirect", "to": ")",
                    secure.Url("y"), "\"}")});
  secure.Put("y", "y");
  EXPECT_EQ(Get(server_.Url("y")).bytes, "y");
  // Nor is it lost by a way round: what is https once stays it.
  server_.SetFaults(
      {absl::StrCat(R"({"request": "GET /y", "do": "redirect", "to": ")",
                    secure.Url("x"), "\"}")});
  EXPECT_THAT(Get(server_.Url("y")).status,
              StatusIs(kRefused, HasSubstr("without TLS")));
}

TEST_F(WebClientTest, AServerOfTlsThatSpeaksPlainTextMayPass) {
  EXPECT_THAT(Get("https://127.0.0.1:" + server_.port() + "/x").status,
              StatusIs(kPasses, HasSubstr("SSL")));
}

}  // namespace
}  // namespace parasol
