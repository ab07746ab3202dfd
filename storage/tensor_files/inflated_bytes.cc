#include "storage/tensor_files/inflated_bytes.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr uint64_t kInputBytes = 64 << 10;
constexpr size_t kSkippedBytes = 64 << 10;
// A raw deflate stream, without zlib's or gzip's header.
constexpr int kRawWindowBits = -MAX_WBITS;

}  // namespace

InflatedBytes::~InflatedBytes() { Stop(); }

void InflatedBytes::Start() {
  stream_ = {};
  CHECK_EQ(inflateInit2(&stream_, kRawWindowBits), Z_OK);
  started_ = true;
  next_input_ = begin_;
  next_ = 0;
}

void InflatedBytes::Stop() {
  if (started_) inflateEnd(&stream_);
  started_ = false;
}

absl::Status InflatedBytes::Read(uint64_t offset, absl::Span<char> out) {
  if (!started_ || offset < next_) {
    Stop();
    Start();
  }
  std::string skipped;
  while (next_ < offset) {
    skipped.resize(std::min<uint64_t>(offset - next_, kSkippedBytes));
    RETURN_IF_ERROR(Next(absl::MakeSpan(skipped)));
  }
  return Next(out);
}

absl::Status InflatedBytes::Next(absl::Span<char> out) {
  while (!out.empty()) {
    const size_t count = std::min<size_t>(out.size(), UINT_MAX);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(count);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const size_t given = count - stream_.avail_out;
    // zlib may hold elements back whose bytes it has taken: more input is
    // needed only when it gives none.
    const bool needs_input =
        given == 0 && stream_.avail_in == 0 && result != Z_STREAM_END;
    if (needs_input && (result == Z_OK || result == Z_BUF_ERROR)) {
      RETURN_IF_ERROR(Refill());
      continue;
    }
    if (given == 0 || (result != Z_OK && result != Z_STREAM_END) ||
        (result == Z_STREAM_END && given < out.size())) {
      return absl::DataLossError(absl::StrCat(file_.path(),
                                              ": the compressed bytes from ",
                                              begin_, " on are damaged"));
    }
    next_ += given;
    out.remove_prefix(given);
  }
  return absl::OkStatus();
}

absl::Status InflatedBytes::Refill() {
  if (next_input_ == end_) {
    return absl::DataLossError(absl::StrCat(
        file_.path(), ": the compressed bytes from ", begin_, " on end early"));
  }
  ASSIGN_OR_RETURN(input_, file_.Read(next_input_, std::min(end_ - next_input_,
                                                            kInputBytes)));
  next_input_ += input_.size();
  stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
  stream_.avail_in = static_cast<uInt>(input_.size());
  return absl::OkStatus();
}

}  // namespace parasol
