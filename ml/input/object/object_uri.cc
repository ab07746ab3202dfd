#include "ml/input/object/object_uri.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::string_view kBehindScheme = "://";
constexpr char kAnonymous[] = "anonymous@";

struct Scheme {
  absl::string_view name;
  std::vector<std::string> options;  // none has anything secret
  bool has_buckets = true;
};

const std::vector<Scheme>& Schemes() {
  static const auto* const schemes = new std::vector<Scheme>{
      {"s3",
       {"region", "scheme", "endpoint_override", "tls_verify_certificates"}},
      {"gs", {"scheme", "endpoint_override", "project_id"}},
      {"hdfs", {"user", "kerb_ticket"}, /*has_buckets=*/false}};
  return *schemes;
}

const Scheme* FindScheme(absl::string_view name) {
  for (const Scheme& scheme : Schemes()) {
    if (scheme.name == name) return &scheme;
  }
  return nullptr;
}

absl::Status CheckOptions(const Scheme& scheme, absl::string_view shown,
                          absl::string_view options) {
  if (options.empty()) return absl::OkStatus();
  for (const absl::string_view option : absl::StrSplit(options, '&')) {
    const std::string name(option.substr(0, option.find('=')));
    if (std::find(scheme.options.begin(), scheme.options.end(), name) !=
        scheme.options.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": ", scheme.name, ":// has no option ",
                     ShownText(name), DidYouMean(name, scheme.options),
                     "; it has ", ShownList(scheme.options)));
  }
  return absl::OkStatus();
}

absl::StatusOr<const Scheme*> KnownScheme(absl::string_view name) {
  const Scheme* const scheme = FindScheme(name);
  if (scheme != nullptr) return scheme;
  if (name == "http" || name == "https") {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        "://: web servers have only files of data, and of other programs' "
        "models; name a folder, or s3://bucket/key or gs://bucket/key"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShownText(name),
      "://: files of this scheme are not read; they are in "
      "folders, or s3://bucket/key, gs://bucket/key, hdfs://host:port/path or "
      "https://host/path"));
}

}  // namespace

std::string ObjectUri::Of(absl::string_view path) const {
  const bool has_buckets = FindScheme(scheme)->has_buckets;
  return absl::StrCat(scheme, kBehindScheme, user, has_buckets ? "" : place,
                      path, options.empty() ? "" : "?", options);
}

std::string ObjectUri::Store() const {
  return absl::StrCat(scheme, kBehindScheme, user, place,
                      FindScheme(scheme)->has_buckets ? "" : "/",
                      options.empty() ? "" : "?", options);
}

absl::StatusOr<ObjectUri> ParseObjectUri(absl::string_view uri) {
  ObjectUri parts;
  parts.scheme = std::string(uri.substr(0, SchemeBytes(uri)));
  ASSIGN_OR_RETURN(const Scheme* const scheme, KnownScheme(parts.scheme));
  uri.remove_prefix(parts.scheme.size() + kBehindScheme.size());
  if (const std::optional<size_t> begin = OptionsBegin(uri)) {
    parts.options = std::string(uri.substr(*begin));
    uri = uri.substr(0, *begin - 1);
  }
  if (parts.scheme == "gs" && absl::ConsumePrefix(&uri, kAnonymous)) {
    parts.user = kAnonymous;
  }
  parts.place = std::string(uri.substr(0, uri.find('/')));
  const size_t user = parts.place.rfind('@');
  if (user != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts.scheme, kBehindScheme, "…@",
        ShownText(parts.place.substr(user + 1)),
        ": a name of a file has no credentials, for it is in logs and "
        "checkpoints; give them to the process (docs/job/data.md)"));
  }
  // No bucket has one: it stands between a user's name and a key with a '/'.
  if (scheme->has_buckets && absl::StrContains(parts.place, ':')) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts.scheme, kBehindScheme,
        "…: no bucket has a ':' in its name; if it is a part of credentials, "
        "give them to the process (docs/job/data.md)"));
  }
  const std::string shown =
      absl::StrCat(parts.scheme, kBehindScheme, OneLine(uri));
  RETURN_IF_ERROR(CheckOptions(*scheme, shown, parts.options));
  if (parts.place.empty() && scheme->has_buckets) {
    return absl::InvalidArgumentError(absl::StrCat(
        shown, ": has no bucket; it is ", parts.scheme, "://bucket/key"));
  }
  while (absl::ConsumeSuffix(&uri, "/")) {
  }
  parts.path =
      std::string(scheme->has_buckets ? uri : uri.substr(parts.place.size()));
  return parts;
}

}  // namespace parasol
