#include "chief/kubeflow/https_post.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::string_view kScheme = "https://";
// What is shown of an answer that refuses.
constexpr size_t kShownAnswerBytes = 200;

struct Close {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, Close>;
using Headers = std::unique_ptr<curl_slist, Close>;

// Called by libcurl, a few times a second also while nothing comes.
int OnProgress(void* cancelled, curl_off_t, curl_off_t, curl_off_t,
               curl_off_t) {
  return static_cast<const std::atomic<bool>*>(cancelled)->load() ? 1 : 0;
}

// Keeps the beginning of the answer, and lets the rest go by.
size_t OnAnswer(char* data, size_t size, size_t count, void* answer) {
  auto& text = *static_cast<std::string*>(answer);
  const size_t room =
      kShownAnswerBytes - std::min(text.size(), kShownAnswerBytes);
  text.append(data, std::min(size * count, room));
  return size * count;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> file = ReadFile(path, kMaxTokenBytes);
  if (!file.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the token: ", file.status().message()));
  }
  const absl::string_view token = absl::StripAsciiWhitespace(*file);
  const bool is_one_word = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (token.empty() || file->size() > kMaxTokenBytes || !is_one_word) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a token of one word and up to ",
                     kMaxTokenBytes, " bytes"));
  }
  return std::string(token);
}

// Sets an option that can fail for want of memory only.
template <typename Value>
void Set(CURL* curl, CURLoption option, Value value) {
  CHECK_EQ(curl_easy_setopt(curl, option, value), CURLE_OK)
      << "libcurl's option " << option;
}

absl::Status AnswerStatus(long code, const std::string& answer) {
  if (code >= 200 && code < 300) return absl::OkStatus();
  const std::string message =
      absl::StrCat("the server answered ", code, ": ", ShownText(answer));
  return code == 401 || code == 403 ? absl::PermissionDeniedError(message)
                                    : absl::FailedPreconditionError(message);
}

}  // namespace

absl::Status CheckHttpsServer(const HttpsServer& server) {
  if (!absl::StartsWith(server.url, kScheme)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", server.url,
                     "' does not begin with https://, and "
                     "the token is sent to nobody else"));
  }
  if (server.ca_file.empty() || server.token_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file of the ",
                     server.ca_file.empty() ? "CA" : "token", " has no name"));
  }
  return absl::OkStatus();
}

absl::Status PostJson(const HttpsServer& server, const std::string& body,
                      absl::Duration timeout,
                      const std::atomic<bool>& cancelled) {
  RETURN_IF_ERROR(CheckHttpsServer(server));
  ASSIGN_OR_RETURN(const std::string token, ReadToken(server.token_file));
  // Function-local: the first call initialises libcurl, once.
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  const Handle curl(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (curl == nullptr) return absl::UnavailableError("libcurl can't begin");
  Headers headers(curl_slist_append(nullptr, "Content-Type: application/json"));
  std::string answer;
  char error[CURL_ERROR_SIZE] = "";
  Set(curl.get(), CURLOPT_ERRORBUFFER, error);
  Set(curl.get(), CURLOPT_NOSIGNAL, 1L);
  // A name that is being looked up does not hold up the end.
  Set(curl.get(), CURLOPT_QUICK_EXIT, 1L);
  Set(curl.get(), CURLOPT_TIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(timeout)));
  Set(curl.get(), CURLOPT_PROTOCOLS_STR, "https");
  Set(curl.get(), CURLOPT_URL, server.url.c_str());
  // The CA that the platform names, and no other.
  Set(curl.get(), CURLOPT_CAINFO, server.ca_file.c_str());
  Set(curl.get(), CURLOPT_CAPATH, static_cast<char*>(nullptr));
  Set(curl.get(), CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
  Set(curl.get(), CURLOPT_XOAUTH2_BEARER, token.c_str());
  Set(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  Set(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  Set(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  Set(curl.get(), CURLOPT_WRITEFUNCTION, &OnAnswer);
  Set(curl.get(), CURLOPT_WRITEDATA, &answer);
  Set(curl.get(), CURLOPT_NOPROGRESS, 0L);
  Set(curl.get(), CURLOPT_XFERINFOFUNCTION, &OnProgress);
  Set(curl.get(), CURLOPT_XFERINFODATA, &cancelled);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("stopped");
  if (code != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(
        server.url, ": ", error[0] != '\0' ? error : curl_easy_strerror(code)));
  }
  long answered = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answered);
  return AnswerStatus(answered, answer);
}

}  // namespace parasol
