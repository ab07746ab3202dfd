#ifndef PARASOL_ML_INPUT_WEB_WEB_CLIENT_H_
#define PARASOL_ML_INPUT_WEB_WEB_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/uri/web_url.h"
#include "ml/input/web/curl_library.h"
#include "ml/input/web/web_answer.h"

namespace parasol {

// Requests for files of web servers, by libcurl. Certificates are verified, by
// the authorities in the file that SSL_CERT_FILE names or else the system's.
// The environment's proxies are used. No credentials are sent. Connections are
// kept. Thread-safe.
class WebClient {
 public:
  struct Limits {
    absl::Duration connect = absl::Seconds(20);
    // How long an answer may bring less than `least_rate`.
    absl::Duration silence = absl::Seconds(30);
    long least_rate = 1024;  // bytes per second
  };

  struct Request {
    const WebUrl& url;
    std::string range;     // "0-99"; "": the whole file
    std::string if_range;  // the ETag that the file must have; "": any
  };

  // Is called with the head of an answer that has a file or a part of it, or
  // says that there is no such part, and no bytes; then with bytes of the file.
  // Returns false when nothing more of the answer is wanted.
  using Take = absl::FunctionRef<absl::StatusOr<bool>(const WebAnswer& answer,
                                                      absl::string_view bytes)>;

  //   FailedPrecondition  libcurl is not installed.
  static absl::StatusOr<std::unique_ptr<WebClient>> Create(Limits limits);
  // Returns the client of this process.
  static absl::StatusOr<WebClient*> OfProcess();
  ~WebClient();

  // Sends a request, goes where the server redirects it (not from https:// to
  // http://, and ten times at most), and gives the answer to `take`. Is not
  // tried again. Errors name the URL without its query.
  //   NotFound            there is no such file.
  //   PermissionDenied    the server refuses.
  //   Unavailable         network or server fail, or are too slow: another try
  //                       may succeed (WaitOf() says when).
  //   FailedPrecondition  the server's certificate is not good, or it answers
  //                       what can't be used.
  //   any other           an error of `take`.
  absl::Status Get(const Request& request, Take take) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how long a server that was busy wants to be left alone.
  static absl::Duration WaitOf(const absl::Status& status);

 private:
  class Transfer;

  WebClient(CurlLibrary library, Limits limits, std::string authorities)
      : library_(std::move(library)),
        limits_(limits),
        authorities_(std::move(authorities)) {}

  CURL* TakeHandle() ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(CURL* handle) ABSL_LOCKS_EXCLUDED(mu_);
  void Configure(CURL* handle) const;

  const CurlLibrary library_;
  const Limits limits_;
  const std::string authorities_;  // path; "": the library's own
  absl::Mutex mu_;
  std::vector<CURL*> idle_ ABSL_GUARDED_BY(mu_);  // Handles, with connections
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_WEB_CLIENT_H_
