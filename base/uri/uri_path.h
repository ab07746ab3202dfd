#ifndef PARASOL_BASE_URI_URI_PATH_H_
#define PARASOL_BASE_URI_URI_PATH_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// Names of files: paths of this machine, or URIs, "s3://bucket/key", perhaps
// with options behind them, "s3://bucket/key?region=eu-west-1". Pure.
namespace parasol {

// Returns the bytes before "://", or 0 of what begins with no scheme.
size_t SchemeBytes(absl::string_view path);

// Returns true if `path` begins as a URI does, with "name://".
bool IsUri(absl::string_view path);

// Returns where the options of `uri` begin, behind their '?': "name=value", or
// several with '&' between them. Another '?' is a wildcard.
std::optional<size_t> OptionsBegin(absl::string_view uri);

// Returns where `path` is, which may be relative to `directory`: either may be
// a URI. What is in a URI's directory has its options.
std::string JoinedPath(absl::string_view directory, absl::string_view path);

// Returns the directory that `path` is in, of a URI with its options.
std::string ParentPath(absl::string_view path);

// Returns the last name of a path, without a URI's options.
std::string LastName(absl::string_view path);

}  // namespace parasol

#endif  // PARASOL_BASE_URI_URI_PATH_H_
