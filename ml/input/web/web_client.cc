#include "ml/input/web/web_client.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/version.h"

namespace parasol {
namespace {

constexpr int kMostRedirects = 10;
constexpr size_t kMostIdle = 16;
constexpr size_t kMostOtherBytes = 1 << 20;  // of an answer that is no file's
constexpr long kBufferBytes = 256 << 10;
constexpr char kAuthorities[] = "SSL_CERT_FILE";
constexpr absl::string_view kWaitPayload = "parasol/seconds_to_wait";

bool IsRedirect(int status) {
  constexpr int kNotModified = 304;
  constexpr int kFirst = 300;
  constexpr int kBehind = 400;
  return status >= kFirst && status < kBehind && status != kNotModified;
}

// What an answer without a file says.
absl::Status ErrorOfAnswer(const WebUrl& url, int status, curl_off_t wait) {
  const std::string text =
      absl::StrCat(url.shown, ": the server answers ", status);
  switch (status) {
    case 404:
    case 410:
      return absl::NotFoundError(absl::StrCat(
          url.shown, ": there is no such file (the server answers ", status,
          ")"));
    case 401:
    case 403:
    case 407:
      return absl::PermissionDeniedError(absl::StrCat(
          text,
          ", it refuses: only files that need no credentials are read from web "
          "servers; read it from a store (s3://, gs://), or bring it to a "
          "folder first"));
    case 408:
    case 421:
    case 425:
    case 429:
      break;
    default:
      constexpr int kServerError = 500;
      if (status >= kServerError) break;
      return absl::FailedPreconditionError(absl::StrCat(
          text, ", with which no file is read; is the URL right?"));
  }
  absl::Status busy =
      absl::UnavailableError(absl::StrCat(text, ", it is busy or has failed"));
  if (wait > 0) busy.SetPayload(kWaitPayload, absl::Cord(absl::StrCat(wait)));
  return busy;
}

}  // namespace

// One request and its answer.
class WebClient::Transfer {
 public:
  Transfer(const CurlLibrary& library, CURL* handle, const Request& request,
           Take take)
      : library_(library), handle_(handle), request_(request), take_(take) {
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_HEADERFUNCTION, &OnLine);
    Set(CURLOPT_HEADERDATA, this);
    Set(CURLOPT_WRITEFUNCTION, &OnBytes);
    Set(CURLOPT_WRITEDATA, this);
    if (!request.range.empty()) Set(CURLOPT_RANGE, request.range.c_str());
    if (!request.if_range.empty()) {
      fields_ = library.append(
          nullptr, absl::StrCat("If-Range: ", request.if_range).c_str());
      Set(CURLOPT_HTTPHEADER, fields_);
    }
  }
  ~Transfer() { library_.free_all(fields_); }

  absl::Status Run() {
    std::string url = request_.url.url;
    for (int redirects = 0;; ++redirects) {
      answer_ = WebAnswer();
      other_bytes_ = 0;
      error_[0] = '\0';
      Set(CURLOPT_URL, url.c_str());
      const CURLcode code = library_.perform(handle_);
      if (!IsRedirect(answer_.status())) return ResultOf(code, url);
      RETURN_IF_ERROR(failed_);
      if (code != CURLE_OK) return ErrorOfLibrary(code, url);
      ASSIGN_OR_RETURN(url, NextUrl(url));
      if (redirects == kMostRedirects) {
        return Refused(absl::StrCat(
            "the server redirects the request more than ", kMostRedirects,
            " times, last to ", OneLine(HostOfUrl(url))));
      }
    }
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    CHECK_EQ(library_.set(handle_, option, value), CURLE_OK)
        << "libcurl's option " << option;
  }

  static size_t OnLine(char* data, size_t size, size_t count, void* transfer) {
    auto& self = *static_cast<Transfer*>(transfer);
    const absl::Status added = self.answer_.AddLine({data, size * count});
    if (added.ok()) return size * count;
    self.failed_ = absl::Status(
        added.code(),
        absl::StrCat(self.request_.url.shown, ": ", added.message()));
    return 0;
  }

  static size_t OnBytes(char* data, size_t size, size_t count, void* transfer) {
    auto& self = *static_cast<Transfer*>(transfer);
    return self.GoesOn({data, size * count}) ? size * count : 0;
  }

  bool GoesOn(absl::string_view bytes) {
    if (!answer_.has_body_of_file()) {
      other_bytes_ += bytes.size();
      return other_bytes_ <= kMostOtherBytes;
    }
    return (is_told_ || Tell("")) && Tell(bytes);
  }

  bool Tell(absl::string_view bytes) {
    is_told_ = true;
    const absl::StatusOr<bool> goes_on = take_(answer_, bytes);
    if (!goes_on.ok()) failed_ = goes_on.status();
    is_enough_ = goes_on.ok() && !*goes_on;
    return goes_on.ok() && *goes_on;
  }

  absl::StatusOr<std::string> NextUrl(const std::string& url) const {
    char* text = nullptr;
    library_.info(handle_, CURLINFO_REDIRECT_URL, &text);
    const std::string next = text == nullptr ? "" : text;
    const std::string shown =
        absl::StrCat("the server redirects the request to ",
                     next.empty() ? "nowhere" : OneLine(HostOfUrl(next)), " ");
    constexpr absl::string_view kSecure = "https://";
    if (absl::StartsWithIgnoreCase(next, kSecure)) return next;
    if (!absl::StartsWithIgnoreCase(next, "http://")) {
      return Refused(
          absl::StrCat(shown, "by no http:// or https://, which is refused"));
    }
    if (!absl::StartsWithIgnoreCase(url, kSecure)) return next;
    return Refused(absl::StrCat(
        shown,
        "without TLS, from https:// to http://, which is refused; if "
        "everybody on the way may see and change the data, name that "
        "URL"));
  }

  absl::Status Refused(absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat(request_.url.shown, ": ", what));
  }

  absl::Status ResultOf(CURLcode code, const std::string& url) {
    RETURN_IF_ERROR(failed_);
    if (is_enough_) return absl::OkStatus();
    const int status = answer_.status();
    const bool has_file =
        answer_.has_body_of_file() ||
        (status == WebAnswer::kNoSuchPart && code == CURLE_OK);
    if (status != 0 && !has_file) {
      curl_off_t wait = 0;
      library_.info(handle_, CURLINFO_RETRY_AFTER, &wait);
      return ErrorOfAnswer(request_.url, status, wait);
    }
    if (code != CURLE_OK) return ErrorOfLibrary(code, url);
    if (status == 0) {
      return absl::UnavailableError(absl::StrCat(
          request_.url.shown, ": the server's answer has no status"));
    }
    if (!is_told_) Tell("");
    RETURN_IF_ERROR(failed_);
    return absl::OkStatus();
  }

  absl::Status ErrorOfLibrary(CURLcode code, const std::string& url) const {
    const std::string host = HostOfUrl(url);
    const std::string text = absl::StrCat(
        request_.url.shown, ": ",
        OneLine(error_[0] != '\0' ? error_ : library_.error(code)),
        host == request_.url.host
            ? ""
            : absl::StrCat(" (redirected to ", OneLine(host), ")"));
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        return absl::FailedPreconditionError(absl::StrCat(
            text, "; the certificate of ", OneLine(host),
            " is verified by the authorities in the file that ", kAuthorities,
            " names, or else the system's (Debian's package ca-certificates)"));
      case CURLE_URL_MALFORMAT:
      case CURLE_LOGIN_DENIED:
        return absl::FailedPreconditionError(text);
      case CURLE_OUT_OF_MEMORY:
        return absl::ResourceExhaustedError(text);
      case CURLE_OPERATION_TIMEDOUT:
        return absl::UnavailableError(
            absl::StrCat(text, "; ", OneLine(host), " is too slow"));
      default:
        return absl::UnavailableError(text);
    }
  }

  const CurlLibrary& library_;
  CURL* const handle_;
  const Request& request_;
  const Take take_;
  curl_slist* fields_ = nullptr;
  char error_[CURL_ERROR_SIZE] = "";
  WebAnswer answer_;
  size_t other_bytes_ = 0;
  bool is_told_ = false;  // that there is an answer
  bool is_enough_ = false;
  absl::Status failed_;
};

absl::StatusOr<std::unique_ptr<WebClient>> WebClient::Create(Limits limits) {
  ASSIGN_OR_RETURN(CurlLibrary library, CurlLibrary::Open());
  const char* const authorities = std::getenv(kAuthorities);
  return std::unique_ptr<WebClient>(new WebClient(
      std::move(library), limits, authorities == nullptr ? "" : authorities));
}

absl::StatusOr<WebClient*> WebClient::OfProcess() {
  static auto* const client =
      new absl::StatusOr<std::unique_ptr<WebClient>>(Create({}));
  RETURN_IF_ERROR(client->status());
  return (*client)->get();
}

WebClient::~WebClient() {
  const absl::MutexLock lock(&mu_);
  for (CURL* const handle : idle_) library_.cleanup(handle);
}

CURL* WebClient::TakeHandle() {
  {
    const absl::MutexLock lock(&mu_);
    if (!idle_.empty()) {
      CURL* const handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  return library_.init();
}

void WebClient::GiveBack(CURL* handle) {
  library_.reset(handle);
  {
    const absl::MutexLock lock(&mu_);
    if (idle_.size() < kMostIdle) {
      idle_.push_back(handle);
      return;
    }
  }
  library_.cleanup(handle);
}

void WebClient::Configure(CURL* handle) const {
  const auto set = [&](CURLoption option, auto value) {
    CHECK_EQ(library_.set(handle, option, value), CURLE_OK)
        << "libcurl's option " << option;
  };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, kWebProtocols);
  // A part of a file has a connection of its own, and no compression.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_USERAGENT, absl::StrCat("parasol/", kVersion).c_str());
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(limits_.connect)));
  set(CURLOPT_LOW_SPEED_LIMIT, limits_.least_rate);
  set(CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(absl::ToInt64Seconds(limits_.silence)));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!authorities_.empty()) {
    set(CURLOPT_CAINFO, authorities_.c_str());
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
}

absl::Status WebClient::Get(const Request& request, Take take) {
  CURL* const handle = TakeHandle();
  if (handle == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(request.url.shown, ": no memory for a request"));
  }
  Configure(handle);
  const absl::Status status = Transfer(library_, handle, request, take).Run();
  GiveBack(handle);
  return status;
}

absl::Duration WebClient::WaitOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kWaitPayload);
  int64_t seconds = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &seconds)) {
    return absl::ZeroDuration();
  }
  return absl::Seconds(seconds);
}

}  // namespace parasol
