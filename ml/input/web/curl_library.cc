#include "ml/input/web/curl_library.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr char kLibraryFile[] = "libcurl.so.4";
constexpr char kHowToGetIt[] =
    "install Debian's package libcurl4, of version 7.85 or later";

template <typename Function>
absl::Status FindFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kLibraryFile, " has no function ", name, "; ", kHowToGetIt));
}

// Whether the library can be restricted to the protocols that are used, and has
// them.
CURLcode CheckProtocols(const CurlLibrary& library) {
  CURL* const handle = library.init();
  if (handle == nullptr) return CURLE_OUT_OF_MEMORY;
  const CURLcode code =
      library.set(handle, CURLOPT_PROTOCOLS_STR, kWebProtocols);
  library.cleanup(handle);
  return code;
}

absl::StatusOr<CurlLibrary> OpenOnce() {
  void* const library = dlopen(kLibraryFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("libcurl, which reads http:// and https://, can't be "
                     "opened: ",
                     OneLine(dlerror()), "; ", kHowToGetIt));
  }
  CurlLibrary found;
  decltype(&curl_global_init) initialize = nullptr;
  const auto find = [&](const char* name, auto& function) {
    return FindFunction(library, name, function);
  };
  RETURN_IF_ERROR(find("curl_global_init", initialize));
  RETURN_IF_ERROR(find("curl_easy_init", found.init));
  RETURN_IF_ERROR(find("curl_easy_cleanup", found.cleanup));
  RETURN_IF_ERROR(find("curl_easy_reset", found.reset));
  RETURN_IF_ERROR(find("curl_easy_setopt", found.set));
  RETURN_IF_ERROR(find("curl_easy_perform", found.perform));
  RETURN_IF_ERROR(find("curl_easy_getinfo", found.info));
  RETURN_IF_ERROR(find("curl_easy_strerror", found.error));
  RETURN_IF_ERROR(find("curl_slist_append", found.append));
  RETURN_IF_ERROR(find("curl_slist_free_all", found.free_all));
  CURLcode code = initialize(CURL_GLOBAL_DEFAULT);
  if (code == CURLE_OK) code = CheckProtocols(found);
  if (code == CURLE_OK) return found;
  return absl::FailedPreconditionError(absl::StrCat(
      kLibraryFile, " can't be used: ", found.error(code), "; ", kHowToGetIt));
}

}  // namespace

absl::StatusOr<CurlLibrary> CurlLibrary::Open() {
  static const auto* const opened = new absl::StatusOr<CurlLibrary>(OpenOnce());
  return *opened;
}

}  // namespace parasol
