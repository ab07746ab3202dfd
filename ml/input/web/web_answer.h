#ifndef PARASOL_ML_INPUT_WEB_WEB_ANSWER_H_
#define PARASOL_ML_INPUT_WEB_WEB_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// A part of a file, as "Content-Range: bytes 100-199/1000" has it.
struct WebRange {
  uint64_t begin = 0;
  uint64_t size = 0;   // 0: of no part, as "bytes */1000"
  uint64_t total = 0;  // bytes of the file
};

// Returns the part that a text of the kind names; nullopt: it is none, or does
// not say how large the file is. Pure.
std::optional<WebRange> ParseWebRange(absl::string_view text);

// The head of a web server's answer, from which nothing is believed that
// contradicts itself. Pure.
class WebAnswer {
 public:
  // Most bytes of a head.
  static constexpr size_t kMostBytes = 64 << 10;

  // Takes a line of the head, as it came. A status line begins another answer,
  // as behind "100 Continue".
  //   Unavailable  the head is too large, or contradicts itself.
  absl::Status AddLine(absl::string_view line);

  int status() const { return status_; }  // 0: no answer has begun
  bool has_body_of_file() const {
    return status_ == kWhole || status_ == kPart;
  }
  // Number of bytes of the body, if the head says so.
  std::optional<uint64_t> length() const { return length_; }
  std::optional<WebRange> range() const { return range_; }
  // Texts as the server has them; "": it has none.
  const std::string& etag() const { return etag_; }
  const std::string& last_modified() const { return last_modified_; }

  static constexpr int kWhole = 200;
  static constexpr int kPart = 206;
  static constexpr int kNoSuchPart = 416;

 private:
  absl::Status AddField(absl::string_view name, absl::string_view value);

  int status_ = 0;
  size_t bytes_ = 0;
  std::optional<uint64_t> length_;
  std::optional<WebRange> range_;
  std::string etag_;
  std::string last_modified_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_WEB_ANSWER_H_
