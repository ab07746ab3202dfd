#include "base/uri/web_url.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/uri/uri_path.h"

namespace parasol {
namespace {

constexpr absl::string_view kPlain = "http://";
constexpr absl::string_view kSecure = "https://";
constexpr size_t kMostBytes = 8192;
constexpr absl::string_view kNoCredentials =
    "a URL of data has no credentials, for it is in logs and checkpoints; read "
    "the file from a store (s3://, gs://), or bring it to a folder first";

// Words of which a parameter's name has none, unless its value is secret.
constexpr std::array<absl::string_view, 11> kSecretWords = {
    "signature", "token",      "secret",       "password",
    "passwd",    "credential", "api_key",      "api-key",
    "apikey",    "access_key", "authorization"};
// AWSAccessKeyId of Amazon's old signatures, sig of Azure's.
constexpr std::array<absl::string_view, 7> kSecretNames = {
    "awsaccesskeyid", "sig", "auth", "key", "pwd", "pass", "jwt"};

struct UrlParts {
  absl::string_view scheme;
  absl::string_view host;
  absl::string_view path;   // begins with '/', or is empty
  absl::string_view query;  // behind the '?'
  bool has_query = false;
};

bool IsByteOfUrl(char c) {
  constexpr unsigned char kBlank = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(c);
  return byte > kBlank && byte != kDelete && c != '\\';
}

bool IsHost(absl::string_view host) {
  absl::string_view port;
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon != absl::string_view::npos &&
      (bracket == absl::string_view::npos || colon > bracket)) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
    if (port.empty()) return false;
  }
  constexpr size_t kMostDigits = 5;
  return !host.empty() && port.size() <= kMostDigits &&
         std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains(".-_[]:", c) || (c & 0x80) != 0;
         });
}

UrlParts UrlPartsOf(absl::string_view url) {
  UrlParts parts;
  parts.scheme = absl::StartsWith(url, kSecure) ? kSecure : kPlain;
  url.remove_prefix(parts.scheme.size());
  const size_t end = std::min(url.find_first_of("/?#"), url.size());
  parts.host = url.substr(0, end);
  url.remove_prefix(end);
  const size_t query = url.find('?');
  parts.path = url.substr(0, query);
  parts.has_query = query != absl::string_view::npos;
  if (parts.has_query) parts.query = url.substr(query + 1);
  return parts;
}

// Whether a query is of parameters, "name=value" with '&' between them: what it
// is not is meant as a wildcard.
bool IsQuery(absl::string_view query) {
  for (const absl::string_view parameter : absl::StrSplit(query, '&')) {
    const size_t end = parameter.find('=');
    if (end == absl::string_view::npos || end == 0) return false;
  }
  return true;
}

// Returns the text with what "%41" stands for in its place.
std::string Decoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() &&
        absl::ascii_isxdigit(text[i + 1]) &&
        absl::ascii_isxdigit(text[i + 2])) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

bool HasSecret(absl::string_view query) {
  for (const absl::string_view parameter : absl::StrSplit(query, '&')) {
    const std::string name = absl::AsciiStrToLower(
        Decoded(parameter.substr(0, parameter.find('='))));
    if (std::find(kSecretNames.begin(), kSecretNames.end(), name) !=
            kSecretNames.end() ||
        std::any_of(kSecretWords.begin(), kSecretWords.end(),
                    [&](absl::string_view word) {
                      return absl::StrContains(name, word);
                    })) {
      return true;
    }
  }
  return false;
}

std::string ShownWithoutQuery(const UrlParts& parts) {
  // A fragment may be a secret, too.
  const absl::string_view path = parts.path.substr(0, parts.path.find('#'));
  return OneLine(absl::StrCat(parts.scheme, parts.host, path,
                              parts.has_query ? "?…" : ""));
}

absl::Status UrlFault(const UrlParts& parts, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(ShownWithoutQuery(parts), ": ", what));
}

// Checks what is common to files and folders.
absl::StatusOr<UrlParts> CheckedParts(absl::string_view url) {
  if (!IsWebUrl(url)) {
    return absl::InvalidArgumentError(
        "a file of a web server is named https://host/path");
  }
  const UrlParts parts = UrlPartsOf(url);
  // Before anything of it is shown.
  if (absl::StrContains(parts.host, '@')) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.scheme, "…@…: ", kNoCredentials));
  }
  if (!IsHost(parts.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts.scheme,
        "…: is not followed by a host, or a host and the number of its port; a "
        "file is named ",
        parts.scheme, "host:port/path"));
  }
  if (!std::all_of(url.begin(), url.end(), IsByteOfUrl)) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts.scheme, OneLine(parts.host),
        "/…: a URL has no blanks, backslashes or control characters; write %20 "
        "for a blank, and others by their numbers, too"));
  }
  if (url.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.scheme, OneLine(parts.host), "/…: the URL has ",
                     url.size(), " bytes, more than ", kMostBytes));
  }
  if (parts.has_query && HasSecret(parts.query)) {
    return UrlFault(parts, kNoCredentials);
  }
  if (absl::StrContains(url, '#')) {
    return UrlFault(
        parts,
        "a '#' begins no part of a file's name; write %23, or leave "
        "it and what follows it out");
  }
  if (parts.path.find_first_of("*[") != absl::string_view::npos ||
      (parts.has_query && !IsQuery(parts.query))) {
    return UrlFault(parts,
                    "a web server has no lists of files, so a name has no "
                    "wildcard; name each file (%2A, %3F and %5B stand for *, ? "
                    "and [)");
  }
  return parts;
}

}  // namespace

bool IsWebUrl(absl::string_view path) {
  return absl::StartsWith(path, kPlain) || absl::StartsWith(path, kSecure);
}

std::string HostOfUrl(absl::string_view url) {
  const size_t scheme = SchemeBytes(url);
  if (scheme > 0) url.remove_prefix(scheme + absl::string_view("://").size());
  url = url.substr(0, url.find_first_of("/\\?#"));
  return std::string(url.substr(url.rfind('@') + 1));
}

absl::StatusOr<WebUrl> ParseWebUrl(absl::string_view url) {
  const absl::StatusOr<UrlParts> parts = CheckedParts(url);
  if (!parts.ok()) return parts.status();
  const absl::string_view name =
      parts->path.empty() ? "" : parts->path.substr(parts->path.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") {
    return UrlFault(*parts,
                    "is a folder, and a web server has no lists of files; name "
                    "each file");
  }
  return WebUrl{.url = std::string(url),
                .host = std::string(parts->host),
                .name = std::string(name),
                .shown = ShownWithoutQuery(*parts)};
}

absl::Status CheckWebFolder(absl::string_view url) {
  const absl::StatusOr<UrlParts> parts = CheckedParts(url);
  if (!parts.ok()) return parts.status();
  if (parts->has_query) {
    return UrlFault(
        *parts, "a folder has no query; write it behind the names of files");
  }
  return absl::OkStatus();
}

}  // namespace parasol
