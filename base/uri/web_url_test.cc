#include "base/uri/web_url.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(WebUrlTest, AFileHasAHostAndIsShownWithoutItsQuery) {
  ASSERT_OK_AND_ASSIGN(
      const WebUrl url,
      ParseWebUrl("https://host.example:8443/a%20b/day_1.csv.gz?v=2&p1=x[0]"));
  EXPECT_EQ(url.host, "host.example:8443");
  EXPECT_EQ(url.name, "day_1.csv.gz");
  EXPECT_EQ(url.shown, "https://host.example:8443/a%20b/day_1.csv.gz?…");
  ASSERT_OK_AND_ASSIGN(const WebUrl plain, ParseWebUrl("http://[::1]:80/x"));
  EXPECT_EQ(plain.host, "[::1]:80");
  EXPECT_EQ(plain.shown, plain.url);
  EXPECT_OK(ParseWebUrl("http://bücher.example/x"));
  ASSERT_OK_AND_ASSIGN(const WebUrl broken, ParseWebUrl("http://h\xe8/\xff"));
  EXPECT_EQ(broken.shown, R"(http://h\xe8/\xff)") << "no UTF-8";
  EXPECT_TRUE(IsWebUrl("http://h/x"));
  EXPECT_FALSE(IsWebUrl("s3://h/x"));
  EXPECT_FALSE(IsWebUrl("httpx://h/x"));
  EXPECT_FALSE(IsWebUrl("HTTP://h/x"));
}

TEST(WebUrlTest, WhatNamesNoFileIsRefusedWithWhatToDo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"s3://b/x", "https://host/path"},
      {"http://", "host"},
      {"http:///x", "host"},
      {"http://host:port/x", "port"},
      {"http://host:/x", "port"},
      {"http://host:123456/x", "port"},
      {"http://a b/x", "host"},
      {"http://host", "is a folder"},
      {"http://host/", "is a folder"},
      {"http://host/d/", "is a folder"},
      {"http://host/d/..", "is a folder"},
      {"http://host/d/?v=1", "is a folder"},
      {"http://host/day_*.csv", "name each file"},
      {"http://host/day_[12].csv", "name each file"},
      {"http://host/day_?.csv", "name each file"},
      {"http://host/x?=1", "name each file"},
      {"http://host/x#y", "%23"},
      {"http://host/x y", "%20"},
      {"http://host/x\ny", "%20"},
      {"http://host/x\\y", "backslashes"},
      {"http://host/" + std::string(9000, 'x'), "8192"}};
  for (const auto& [url, what] : cases) {
    EXPECT_THAT(ParseWebUrl(url), StatusIs(kInvalid, HasSubstr(what))) << url;
  }
}

TEST(WebUrlTest, CredentialsAreRefusedAndNotShown) {
  for (const char* const url :
       {"http://me:hidden@host/x", "https://hidden@host/x",
        "http://me:hid/hid@host/x", "http://me:hidden\\@host/x",
        "https://host/x?X-Amz-Signature=hidden",
        "https://host/x?v=1&X-Amz-Security-Token=hidden",
        "https://host/x?X-Goog-Credential=hidden", "https://host/x?sig=hidden",
        "https://host/x?AWSAccessKeyId=hidden", "https://host/x?token=hidden",
        "https://host/d/?access_token=hidden", "https://host/*?token=hidden",
        "https://host/x?key=hidden", "https://host/x?%74oken=hidden",
        "https://host/x#access_token=hidden"}) {
    EXPECT_THAT(ParseWebUrl(url), StatusIs(kInvalid, Not(HasSubstr("hid"))))
        << url;
  }
  EXPECT_THAT(ParseWebUrl("https://me:hidden@host/x"),
              StatusIs(kInvalid, HasSubstr("bring it to a folder")));
}

TEST(WebUrlTest, AFolderOfDataHasNoQuery) {
  for (const char* const url : {"http://h", "http://h/", "http://h/d/e"}) {
    EXPECT_OK(CheckWebFolder(url));
  }
  for (const char* const url :
       {"http://h/d?v=1", "http://h/*", "http://a:b@h/d", "http://"}) {
    EXPECT_THAT(CheckWebFolder(url), StatusIs(kInvalid, HasSubstr(": ")))
        << url;
  }
}

TEST(WebUrlTest, AHostIsShownWithoutCredentials) {
  EXPECT_EQ(HostOfUrl("https://me:hidden@host:1/x?y=z"), "host:1");
  EXPECT_EQ(HostOfUrl("https://host"), "host");
  EXPECT_EQ(HostOfUrl("https://host?x@y"), "host");
  EXPECT_EQ(HostOfUrl("file:///etc/passwd"), "");
  EXPECT_EQ(HostOfUrl(""), "");
}

}  // namespace
}  // namespace parasol
