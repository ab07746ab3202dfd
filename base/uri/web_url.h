#ifndef PARASOL_BASE_URI_WEB_URL_H_
#define PARASOL_BASE_URI_WEB_URL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The name of a file of a web server, "https://host:8443/data/day_1.csv.gz". It
// has no credentials.
struct WebUrl {
  std::string url;    // all of it
  std::string host;   // "host:8443"
  std::string name;   // "day_1.csv.gz"
  std::string shown;  // one line for messages, with "…" in place of a query
};

// Returns true if `path` begins with "http://" or "https://".
bool IsWebUrl(absl::string_view path);

// Returns the host of a URL, and its port, as it says them: never credentials.
std::string HostOfUrl(absl::string_view url);

// Returns the parts of a file's URL. Pure.
//   InvalidArgument  another scheme, no host, a folder or a wildcard (a server
//                    of files has no lists), blanks, or credentials, none of
//                    which is shown.
absl::StatusOr<WebUrl> ParseWebUrl(absl::string_view url);

// Returns InvalidArgument, as ParseWebUrl(), for a URL that is no folder's.
absl::Status CheckWebFolder(absl::string_view url);

}  // namespace parasol

#endif  // PARASOL_BASE_URI_WEB_URL_H_
