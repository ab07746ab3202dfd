#include "ml/input/web/web_answer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

WebAnswer AnswerOf(const std::vector<std::string>& lines) {
  WebAnswer answer;
  for (const std::string& line : lines) {
    EXPECT_OK(answer.AddLine(line + "\r\n")) << line;
  }
  return answer;
}

TEST(WebAnswerTest, AHeadSaysWhichPartOfWhichFile) {
  const WebAnswer answer = AnswerOf(
      {"HTTP/1.1 206 Partial Content", "content-length: 100",
       "Content-Range: bytes 100-199/1000", "ETAG:  \"a b:c\" ",
       "Last-Modified: Mon, 30 Nov 2026 09:00:00 GMT", "X: y", "", "no field"});
  EXPECT_EQ(answer.status(), 206);
  EXPECT_TRUE(answer.has_body_of_file());
  EXPECT_THAT(answer.length(), Optional(100));
  ASSERT_TRUE(answer.range().has_value());
  EXPECT_EQ(answer.range()->begin, 100);
  EXPECT_EQ(answer.range()->size, 100);
  EXPECT_EQ(answer.range()->total, 1000);
  EXPECT_EQ(answer.etag(), "\"a b:c\"");
  EXPECT_EQ(answer.last_modified(), "Mon, 30 Nov 2026 09:00:00 GMT");
}

TEST(WebAnswerTest, AStatusLineForgetsWhatWasBefore) {
  const WebAnswer answer =
      AnswerOf({"HTTP/1.1 103 Early Hints", "ETag: \"hint\"",
                "Content-Length: 7", "", "HTTP/1.1 200"});
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.etag(), "");
  EXPECT_EQ(answer.length(), std::nullopt);
  for (const char* line :
       {"HTTP/1.1", "HTTP/", "HTTP/1.1 -20", "HTTP/1.1 2x0"}) {
    EXPECT_EQ(AnswerOf({line}).status(), 0) << line;
  }
}

TEST(WebAnswerTest, RangesAreWholeNumbersInTheFile) {
  const std::optional<WebRange> none = ParseWebRange("bytes */0");
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->size, 0);
  EXPECT_EQ(none->total, 0);
  EXPECT_EQ(ParseWebRange("Bytes 0-0/1")->size, 1);
  const std::string most = "9223372036854775807";
  EXPECT_EQ(ParseWebRange("bytes 0-9223372036854775806/" + most)->size,
            9223372036854775807u);
  for (const std::string& text :
       std::vector<std::string>{"",
                                "bytes",
                                "bytes ",
                                "bytes 0-0",
                                "bytes 0-0/",
                                "bytes 0-0/*",
                                "bytes 0/1",
                                "bytes -0/1",
                                "bytes 0-/1",
                                "bytes 1-0/2",
                                "bytes 0-1/1",
                                "bytes +0-0/1",
                                "bytes 0x0-0/1",
                                "bytes 0 -0/1",
                                "bytes 0-0/1 ",
                                "bytes 0-0/1/1",
                                "lines 0-0/1",
                                "bytes=0-0/1",
                                "bytes 0-0/9223372036854775808",
                                "bytes 0-0/18446744073709551616",
                                "bytes 0-99999999999999999999999/1"}) {
    EXPECT_EQ(ParseWebRange(text), std::nullopt) << text;
  }
}

TEST(WebAnswerTest, WhatContradictsItselfIsNotBelieved) {
  const auto refused = [](const std::vector<std::string>& lines) {
    WebAnswer answer;
    absl::Status status = answer.AddLine("HTTP/1.1 200 OK");
    for (const std::string& line : lines) {
      if (status.ok()) status = answer.AddLine(line);
    }
    return status;
  };
  constexpr absl::StatusCode kPasses = absl::StatusCode::kUnavailable;
  for (const char* length :
       {"-1", "", "1, 1", "0x10", "1e3", "1 2", "9223372036854775808", "٣"}) {
    EXPECT_THAT(refused({absl::StrCat("Content-Length: ", length)}),
                StatusIs(kPasses, HasSubstr("Content-Length")))
        << length;
  }
  EXPECT_THAT(refused({"Content-Length: 1", "Content-Length: 2"}),
              StatusIs(kPasses, HasSubstr("Content-Length: 2")));
  EXPECT_OK(refused({"Content-Length: 1", "Content-Length: 1"}));
  EXPECT_THAT(refused({"Content-Range: bytes 5-4/9"}),
              StatusIs(kPasses, HasSubstr("5-4")));
  EXPECT_THAT(refused({"Content-Range: bytes 0-4/9", "Content-Range: x"}),
              StatusIs(kPasses, HasSubstr("Content-Range")));
  EXPECT_THAT(refused({absl::StrCat("ETag: ", std::string(2000, 'x'))}),
              StatusIs(kPasses, HasSubstr("ETag")));
  EXPECT_THAT(refused(std::vector<std::string>(100, std::string(1000, 'x'))),
              StatusIs(kPasses, HasSubstr("65536 bytes")));
}

}  // namespace
}  // namespace parasol
