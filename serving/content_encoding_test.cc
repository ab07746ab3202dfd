#include "serving/content_encoding.h"

#include <zlib.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "serving/http_server.h"
#include "serving/testing/http_client.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::string Packed(const std::string& text, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

constexpr int kGzipBits = 16 + MAX_WBITS;

TEST(ContentEncodingTest, GzipAndBothKindsOfDeflateAreUnpacked) {
  const std::string text(200'000, 'x');
  EXPECT_THAT(Unpacked("gzip", Packed(text, kGzipBits), 1 << 20),
              IsOkAndHolds(text));
  EXPECT_THAT(Unpacked(" X-GZIP", Packed(text, kGzipBits), 1 << 20),
              IsOkAndHolds(text));
  for (const int bits : {MAX_WBITS, -MAX_WBITS}) {
    EXPECT_THAT(Unpacked("deflate", Packed(text, bits), 1 << 20),
                IsOkAndHolds(text));
  }
  EXPECT_THAT(Unpacked("identity", "{}", 1), IsOkAndHolds("{}"));
  EXPECT_THAT(Unpacked("", "{}", 1), IsOkAndHolds("{}"));
}

TEST(ContentEncodingTest, TheUnpackedSizeIsBounded) {
  const std::string bomb = Packed(std::string(10 << 20, '\0'), kGzipBits);
  EXPECT_THAT(Unpacked("gzip", bomb, 1 << 20).status(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("more than 1048576 bytes")));
  const std::string text(1000, 'x');
  EXPECT_OK(Unpacked("gzip", Packed(text, kGzipBits), 1000).status());
  EXPECT_THAT(Unpacked("gzip", Packed(text, kGzipBits), 999).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(ContentEncodingTest, WhatIsNoneOfThemIsNamed) {
  const std::string packed = Packed("text", kGzipBits);
  for (const std::string& body :
       {std::string("{}"), std::string(), packed.substr(0, packed.size() - 1),
        packed + "x"}) {
    EXPECT_THAT(Unpacked("gzip", body, 1000).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(Unpacked("deflate", body, 1000).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  for (const char* encoding : {"br", "gzip, gzip", "zstd"}) {
    EXPECT_THAT(
        Unpacked(encoding, "x", 1000).status(),
        StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(encoding)));
  }
}

// Sends a body with an encoding to a server that answers with what it got.
HttpAnswer Echo(const std::string& encoding, const std::string& body,
                int64_t max_buffered_bytes = 1 << 20) {
  const auto server = HttpServer::Start(
      {.host = "127.0.0.1",
       .threads = 2,
       .max_body_bytes = 1000,
       .max_buffered_bytes = max_buffered_bytes},
      [](const HttpRequest& request) {
        return HttpResponse{.body = request.body};
      },
      Clock::Real());
  EXPECT_OK(server);
  HttpClient client((*server)->port());
  client.Send(
      absl::StrCat("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: ", encoding,
                   "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  HttpAnswer answer = client.Receive();
  (*server)->Stop(absl::Seconds(1));
  return answer;
}

TEST(ContentEncodingTest, TheServerUnpacksBodiesAndNamesWhatItCannot) {
  const HttpAnswer good = Echo("gzip", Packed("{\"x\": 1}", kGzipBits));
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.body, "{\"x\": 1}");
  const HttpAnswer large =
      Echo("gzip", Packed(std::string(5000, 'x'), kGzipBits));
  EXPECT_EQ(large.status, 413);
  EXPECT_THAT(large.body, HasSubstr("--max_body_bytes"));
  const HttpAnswer other = Echo("br", "x");
  EXPECT_EQ(other.status, 415);
  EXPECT_THAT(other.body, HasSubstr("br"));
  EXPECT_THAT(other.header, HasSubstr("accept-encoding: gzip, deflate"));
  EXPECT_EQ(Echo("gzip", "{}").status, 400);
  EXPECT_EQ(Echo("gzip", Packed("{}", kGzipBits), 900).status, 503);
}

}  // namespace
}  // namespace parasol
