#include "tests/fuzz/readers/uri_targets.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/uri/topic_uri.h"
#include "base/uri/web_url.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/web/web_answer.h"

namespace parasol {
namespace {

// What is taken is one line, has the parts that it says, and is taken again.
void FeedUri(absl::string_view input) {
  if (const auto url = ParseWebUrl(input); url.ok()) {
    CHECK_EQ(url->url, input);
    CHECK_EQ(OneLine(url->shown), url->shown);
    CHECK_EQ(HostOfUrl(input), url->host);
    CHECK(!url->host.empty() && !url->name.empty()) << url->shown;
  }
  CheckWebFolder(input).IgnoreError();
  if (const auto topic = ParseTopicUri(input); topic.ok()) {
    CHECK(IsTopicUri(input));
  }
  if (const auto object = ParseObjectUri(input); object.ok()) {
    const std::string named = object->Of(object->path);
    const auto again = ParseObjectUri(named);
    CHECK(again.ok()) << again.status();
    CHECK_EQ(again->path, object->path);
    CHECK_EQ(again->Store(), object->Store());
    CHECK_EQ(again->Of(again->path), named);
  }
}

std::vector<std::string> UriSeeds() {
  return {"https://host:8443/data/day_1.csv.gz?version=3&a=b#part",
          "http://[::1]/a%20b.csv",
          "kafka://b1:9092,b2:9092/clicks",
          "s3://bucket/a key/100%.csv?region=eu-west-1&scheme=http",
          "gs://anonymous@bucket/day_*.csv",
          "hdfs://host:8020/path?user=me",
          "s3://bucket/what?.csv"};
}

// The lines of a head.
void FeedWebAnswer(absl::string_view input) {
  WebAnswer answer;
  for (const absl::string_view line : absl::StrSplit(input, '\n')) {
    if (!answer.AddLine(line).ok()) return;
    if (!answer.range().has_value()) continue;
    const WebRange& range = *answer.range();
    CHECK_LE(range.size, range.total);
    CHECK_LE(range.begin, range.total - range.size);
  }
}

std::vector<std::string> WebAnswerSeeds() {
  return {
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial Content\r\n"
      "Content-Length: 100\r\nContent-Range: bytes 100-199/1000\r\n"
      "ETag: \"x\"\r\nLast-Modified: Mon, 30 Nov 2026 13:00:00 GMT\r\n\r\n",
      "HTTP/2 200\ncontent-length: 5\netag: W/\"y\"\n\n",
      "HTTP/1.0 416 No\r\nContent-Range: bytes */1000\r\n\r\n"};
}

}  // namespace

std::vector<FuzzTarget> UriTargets() {
  return {{"uri", FeedUri, UriSeeds},
          {"web_answer", FeedWebAnswer, WebAnswerSeeds}};
}

}  // namespace parasol
