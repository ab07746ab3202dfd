#ifndef PARASOL_ML_INPUT_OBJECT_OBJECT_URI_H_
#define PARASOL_ML_INPUT_OBJECT_OBJECT_URI_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/uri/uri_path.h"

namespace parasol {

// The name of an object in a store: "s3://bucket/key", "gs://bucket/key" or
// "hdfs://host:port/path", perhaps with options of the store behind it:
// "s3://bucket/key?region=eu-west-1". A key is written as it is, also with
// blanks and percent signs. All of it may be shown: it never has credentials.
struct ObjectUri {
  std::string scheme;   // "s3"
  std::string user;     // "anonymous@", for a public bucket of gs://, or ""
  std::string place;    // bucket, or host and port
  std::string path;     // Place in the store; begins with the bucket
  std::string options;  // "region=eu-west-1"

  // Returns the name of what `path` is in this store.
  std::string Of(absl::string_view path) const;
  // Returns the store, as Arrow names it: "s3://bucket?region=eu-west-1".
  std::string Store() const;
};

// Returns the parts of a URI. What follows a '?' is options if it is
// "name=value", or several with '&' between them; else the '?' is a wildcard.
//   InvalidArgument  another scheme, no bucket, an option that the scheme does
//                    not have, or credentials, none of which is shown. Pure.
absl::StatusOr<ObjectUri> ParseObjectUri(absl::string_view uri);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_OBJECT_URI_H_
