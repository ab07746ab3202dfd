#include "serving/content_encoding.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

// Values of inflateInit2()'s windowBits.
constexpr int kGzip = 16 + MAX_WBITS;
constexpr int kZlib = MAX_WBITS;
constexpr int kRaw = -MAX_WBITS;

constexpr size_t kFirstBytes = 64 << 10;

absl::StatusOr<std::string> Inflated(absl::string_view packed, int window_bits,
                                     int64_t max_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, window_bits) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to unpack the body");
  }
  // zlib does not write to its input.
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string body;
  size_t filled = 0;
  int code = Z_OK;
  // Unpacks one byte more than is allowed, to see whether there are more.
  const auto most = static_cast<size_t>(max_bytes) + 1;
  while (code == Z_OK && filled < most) {
    body.resize(std::min(most, std::max(kFirstBytes, 2 * filled)));
    stream.next_out = reinterpret_cast<Bytef*>(&body[filled]);  // NOLINT
    stream.avail_out = static_cast<uInt>(body.size() - filled);
    code = inflate(&stream, Z_NO_FLUSH);
    filled = body.size() - stream.avail_out;
    // All of the input is there: no progress is no end.
    if (code == Z_BUF_ERROR) break;
  }
  const bool is_whole = code == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (filled >= most) {
    return absl::OutOfRangeError(absl::StrCat(
        "the body has more than ", max_bytes, " bytes when it is unpacked"));
  }
  if (!is_whole) {
    return absl::InvalidArgumentError(
        "the body is damaged or cut off: it is not what Content-Encoding says");
  }
  body.resize(filled);
  return body;
}

}  // namespace

absl::StatusOr<std::string> Unpacked(absl::string_view encoding,
                                     std::string body, int64_t max_bytes) {
  encoding = absl::StripAsciiWhitespace(encoding);
  if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "identity")) {
    return body;
  }
  if (absl::EqualsIgnoreCase(encoding, "gzip") ||
      absl::EqualsIgnoreCase(encoding, "x-gzip")) {
    return Inflated(body, kGzip, max_bytes);
  }
  if (absl::EqualsIgnoreCase(encoding, "deflate")) {
    // Zlib's format, as the standard says, or none, as some clients send.
    auto unpacked = Inflated(body, kZlib, max_bytes);
    if (!absl::IsInvalidArgument(unpacked.status())) return unpacked;
    return Inflated(body, kRaw, max_bytes);
  }
  return absl::UnimplementedError(absl::StrCat(
      "Content-Encoding \"", ShownText(encoding),
      "\" is not understood; send the body as it is, or by one of ",
      kContentEncodings));
}

}  // namespace parasol
