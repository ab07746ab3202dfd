#ifndef PARASOL_ML_INPUT_WEB_CURL_LIBRARY_H_
#define PARASOL_ML_INPUT_WEB_CURL_LIBRARY_H_

#include <curl/curl.h>

#include "absl/status/statusor.h"

namespace parasol {

inline constexpr char kWebProtocols[] = "http,https";

// The functions of libcurl that are used. It is opened when a URL is, and not
// linked: with the 25 libraries that it needs it would make every program start
// later. (The chief links it, too, for its few words with Kubernetes.)
struct CurlLibrary {
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) info = nullptr;
  decltype(&curl_easy_strerror) error = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_all = nullptr;

  // Opens the library, the first time, and initialises it. It stays.
  //   FailedPrecondition  it is not installed: says how to do it.
  static absl::StatusOr<CurlLibrary> Open();
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_CURL_LIBRARY_H_
