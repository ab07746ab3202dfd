#include "ml/input/object/web_object.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "ml/input/object/attempts.h"
#include "ml/input/web/web_answer.h"

namespace parasol {
namespace {

constexpr absl::string_view kOrBringIt = "; bring the file to a folder first";

// What a server says of a file.
struct WebVersion {
  uint64_t bytes = 0;
  std::string etag;
  std::string last_modified;
  bool has_parts = false;

  std::string Text() const { return etag.empty() ? last_modified : etag; }
};

// Whether two answers are of one version. The answer with a part may lack one
// of the texts, and where both have an ETag that alone counts: servers behind
// one name may differ in the time.
bool IsSameVersion(const WebVersion& a, const WebVersion& b) {
  if (a.bytes != b.bytes) return false;
  if (!a.etag.empty() && !b.etag.empty()) return a.etag == b.etag;
  if (!a.last_modified.empty() && !b.last_modified.empty()) {
    return a.last_modified == b.last_modified;
  }
  return a.bytes == 0;
}

absl::Status Passing(const WebUrl& url, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(url.shown, ": ", what));
}

// Returns the version of which an answer is, whatever it has of it.
absl::StatusOr<WebVersion> VersionOf(const WebUrl& url,
                                     const WebAnswer& answer) {
  WebVersion version = {.bytes = 0,
                        .etag = answer.etag(),
                        .last_modified = answer.last_modified(),
                        .has_parts = answer.status() != WebAnswer::kWhole};
  if (!version.has_parts) {
    if (!answer.length().has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          url.shown, ": the server does not say how large the file is",
          kOrBringIt));
    }
    version.bytes = *answer.length();
    return version;
  }
  if (!answer.range().has_value()) {
    return Passing(url, absl::StrCat("the server answers ", answer.status(),
                                     ", and not of which part"));
  }
  version.bytes = answer.range()->total;
  return version;
}

// Looks at a file once.
absl::StatusOr<WebVersion> LookAt(const WebUrl& url, WebClient& client) {
  std::optional<WebVersion> found;
  uint64_t received = 0;
  const auto look = [&](const WebAnswer& answer,
                        absl::string_view bytes) -> absl::StatusOr<bool> {
    // The byte that was asked for; all others are left.
    received += bytes.size();
    if (!bytes.empty()) return received == 1;
    // No part of what is empty, or else the server takes no such requests.
    if (answer.status() == WebAnswer::kNoSuchPart &&
        !(answer.range().has_value() && answer.range()->total == 0)) {
      return false;
    }
    ASSIGN_OR_RETURN(found, VersionOf(url, answer));
    return found->has_parts || found->bytes == 0;
  };
  RETURN_IF_ERROR(
      client.Get({.url = url, .range = "0-0", .if_range = ""}, look));
  if (!found.has_value()) {
    RETURN_IF_ERROR(
        client.Get({.url = url, .range = "", .if_range = ""}, look));
  }
  if (!found.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        url.shown, ": the server has no part of the file, nor all of it",
        kOrBringIt));
  }
  if (found->bytes > 0 && found->Text().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        url.shown,
        ": the server says neither an ETag nor when the file was last "
        "modified, so a change of it would not be seen",
        kOrBringIt));
  }
  return *std::move(found);
}

// Takes the bytes of a part, of which some may be there already.
class PartReader {
 public:
  PartReader(uint64_t offset, absl::Span<char> out)
      : offset_(offset), out_(out) {}

  bool is_whole() const { return done_ == out_.size(); }
  uint64_t next() const { return offset_ + done_; }
  std::string Range() const {
    return absl::StrCat(next(), "-", offset_ + out_.size() - 1);
  }

  // Checks that an answer is of a part that begins with the next byte, and is
  // not longer.
  absl::Status Begin(const WebUrl& url, const WebAnswer& answer) {
    const std::optional<WebRange>& range = answer.range();
    if (answer.status() != WebAnswer::kPart || !range.has_value() ||
        range->begin != next() || range->size > out_.size() - done_ ||
        (answer.length().has_value() && *answer.length() != range->size)) {
      return Passing(
          url, absl::StrCat("the server was asked for bytes ", Range(),
                            ", and answers ", answer.status(), " with ",
                            answer.length().has_value()
                                ? absl::StrCat(*answer.length(), " bytes")
                                : "bytes",
                            range.has_value()
                                ? absl::StrCat(" from byte ", range->begin)
                                : ""));
    }
    end_ = done_ + range->size;
    return absl::OkStatus();
  }

  absl::Status Take(const WebUrl& url, absl::string_view bytes) {
    if (bytes.size() > end_ - done_) {
      return Passing(url, "the server answers more bytes than it says");
    }
    std::copy(bytes.begin(), bytes.end(), out_.begin() + done_);
    done_ += bytes.size();
    return absl::OkStatus();
  }

 private:
  const uint64_t offset_;
  const absl::Span<char> out_;
  size_t done_ = 0;
  size_t end_ = 0;  // of the answer, in `out_`
};

class WebObject final : public StoredObject {
 public:
  WebObject(WebUrl url, WebVersion version, WebClient& client, Clock& clock)
      : StoredObject({.uri = url.url,
                      .bytes = version.bytes,
                      .version = version.Text()}),
        url_(std::move(url)),
        version_(std::move(version)),
        client_(client),
        attempts_(clock) {}

  bool has_parts() const override { return version_.has_parts; }

  absl::Status Read(uint64_t offset, absl::Span<char> out) const override {
    if (!has_parts()) return ReadBehind(offset, out);
    PartReader part(offset, out);
    // What has come stays, also if the connection ends.
    return attempts_.Make([&]() -> absl::Status {
      if (part.is_whole()) return absl::OkStatus();
      RETURN_IF_ERROR(Get(part.Range(),
                          [&](const WebAnswer& answer,
                              absl::string_view bytes) -> absl::StatusOr<bool> {
                            RETURN_IF_ERROR(bytes.empty()
                                                ? part.Begin(url_, answer)
                                                : part.Take(url_, bytes));
                            return true;
                          }));
      if (part.is_whole()) return absl::OkStatus();
      return Passing(url_, absl::StrCat("the server answers too few bytes, up "
                                        "to byte ",
                                        part.next(), " of ", bytes()));
    });
  }

  absl::Status ReadAll(size_t piece_bytes, size_t threads,
                       Sink sink) const override {
    if (has_parts()) {
      return StoredObject::ReadAll(piece_bytes, threads, sink);
    }
    return ReadFromStart(
        [&](uint64_t offset, absl::string_view bytes) -> absl::StatusOr<bool> {
          RETURN_IF_ERROR(sink(offset, bytes));
          return true;
        });
  }

  absl::Status CheckIsSame() const override {
    return attempts_.Make([this]() -> absl::Status {
      const absl::StatusOr<WebVersion> now = LookAt(url_, client_);
      if (absl::IsNotFound(now.status())) return Gone();
      RETURN_IF_ERROR(now.status());
      return IsSameVersion(*now, version_) ? absl::OkStatus()
                                           : Changed(now->bytes);
    });
  }

 private:
  // Sends a request once, and gives what comes of this version to `take`.
  absl::Status Get(const std::string& range, WebClient::Take take) const {
    const bool is_strong =
        absl::StartsWith(version_.etag, "\"") && !range.empty();
    const absl::Status got = client_.Get(
        {.url = url_,
         .range = range,
         .if_range = is_strong ? version_.etag : ""},
        [&](const WebAnswer& answer,
            absl::string_view bytes) -> absl::StatusOr<bool> {
          if (bytes.empty()) {
            ASSIGN_OR_RETURN(const WebVersion now, VersionOf(url_, answer));
            const bool is_part = answer.status() != WebAnswer::kNoSuchPart;
            if (is_part ? !IsSameVersion(now, version_)
                        : now.bytes != version_.bytes) {
              return Changed(now.bytes);
            }
          }
          return take(answer, bytes);
        });
    return absl::IsNotFound(got) ? Gone() : got;
  }

  // Reads a file that has no parts until `take` returns false; after what may
  // pass, again from its start.
  absl::Status ReadFromStart(absl::FunctionRef<absl::StatusOr<bool>(
                                 uint64_t offset, absl::string_view bytes)>
                                 take) const {
    return attempts_.Make([&]() -> absl::Status {
      uint64_t done = 0;
      bool goes_on = true;
      RETURN_IF_ERROR(Get("",
                          [&](const WebAnswer& answer,
                              absl::string_view more) -> absl::StatusOr<bool> {
                            if (more.empty()) return true;
                            if (more.size() > bytes() - done) {
                              return Passing(url_,
                                             "the server answers more bytes "
                                             "than it says");
                            }
                            ASSIGN_OR_RETURN(goes_on, take(done, more));
                            done += more.size();
                            return goes_on;
                          }));
      if (!goes_on || done == bytes()) return absl::OkStatus();
      return Passing(url_, absl::StrCat("the server answers too few bytes, ",
                                        done, " of ", bytes()));
    });
  }

  absl::Status ReadBehind(uint64_t offset, absl::Span<char> out) const {
    const uint64_t end = offset + out.size();
    return ReadFromStart(
        [&](uint64_t begin, absl::string_view bytes) -> absl::StatusOr<bool> {
          const uint64_t from = std::max(begin, offset);
          const uint64_t to = std::min(begin + bytes.size(), end);
          if (from < to) {
            std::copy_n(bytes.data() + (from - begin), to - from,
                        out.data() + (from - offset));
          }
          return begin + bytes.size() < end;
        });
  }

  const WebUrl url_;
  const WebVersion version_;
  WebClient& client_;
  const Attempts attempts_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredObject>> OpenWebObject(
    const std::string& url, WebClient& client, Clock& clock) {
  ASSIGN_OR_RETURN(WebUrl parts, ParseWebUrl(url));
  WebVersion version;
  RETURN_IF_ERROR(Attempts(clock).Make([&]() -> absl::Status {
    ASSIGN_OR_RETURN(version, LookAt(parts, client));
    return absl::OkStatus();
  }));
  return std::make_shared<WebObject>(std::move(parts), std::move(version),
                                     client, clock);
}

}  // namespace parasol
