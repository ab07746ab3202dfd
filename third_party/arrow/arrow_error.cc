#include "arrow_error.h"

#include <arrow/util/io_util.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "arrow_shim.h"

namespace {

using arrow::Status;

// Words in messages of AWS's and of Google's library, and numbers of HTTP, by
// which failures are told apart: Arrow has one code for all.
constexpr std::string_view kNotFoundWords[] = {
    "AWS Error NO_SUCH_BUCKET ", "AWS Error NO_SUCH_KEY ",
    "AWS Error RESOURCE_NOT_FOUND ", "HTTP status 404", "(NOT_FOUND:"};
constexpr std::string_view kRefusedWords[] = {
    "AWS Error ACCESS_DENIED ",
    "AWS Error INVALID_ACCESS_KEY_ID ",
    "AWS Error INVALID_CLIENT_TOKEN_ID ",
    "AWS Error INVALID_SIGNATURE ",
    "AWS Error MISSING_AUTHENTICATION_TOKEN ",
    "AWS Error SIGNATURE_DOES_NOT_MATCH ",
    "AWS Error UNRECOGNIZED_CLIENT ",
    "HTTP status 301",
    "HTTP status 400",
    "HTTP status 401",
    "HTTP status 403",
    "(PERMISSION_DENIED:",
    "(UNAUTHENTICATED:",
    "(INVALID_ARGUMENT:"};

// Google's library asks for an access token before each request that needs one.
constexpr std::string_view kNoToken = "Could not create a OAuth2 access token";
constexpr std::string_view kMayPassWords[] = {
    "(UNAVAILABLE:", "(DEADLINE_EXCEEDED:", "(INTERNAL:"};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <typename Words>
bool HasOne(const std::string& message, const Words& words) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return Has(message, word); });
}

// Leaves of `text` what is behind `mark`, if it has that.
void KeepBehind(std::string_view mark, std::string_view& text) {
  const size_t begin = text.find(mark);
  if (begin != std::string_view::npos) text.remove_prefix(begin + mark.size());
}

}  // namespace

int StoreCode(const Status& status) {
  if (status.IsOutOfMemory()) return PARASOL_ARROW_NO_MEMORY;
  const std::string& message = status.message();
  if (Has(message, kNoToken)) {
    return HasOne(message, kMayPassWords) ? PARASOL_ARROW_NO_TOKEN
                                          : PARASOL_ARROW_REFUSED;
  }
  if (!status.IsIOError()) return 1;
  const int number = arrow::internal::ErrnoFromStatus(status);
  if (number == ENOENT || HasOne(message, kNotFoundWords)) {
    return PARASOL_ARROW_NOT_FOUND;
  }
  if (number == EACCES || HasOne(message, kRefusedWords)) {
    return PARASOL_ARROW_REFUSED;
  }
  // Where Hadoop is not installed, another try finds it neither.
  return message.find("libhdfs") != std::string::npos ? 1
                                                      : PARASOL_ARROW_MAY_PASS;
}

std::string StoreMessage(const Status& status) {
  constexpr std::string_view kBegin = "google::cloud::Status(";
  std::string_view text = status.message();
  if (!Has(text, kBegin)) return std::string(text);
  KeepBehind(kBegin, text);
  const size_t end_of_code = text.find(": ");
  if (end_of_code == std::string_view::npos) return std::string(text);
  const std::string code(text.substr(0, end_of_code));
  text.remove_prefix(end_of_code + 2);
  text = text.substr(0, text.find(" error_info={"));
  KeepBehind("with a last message of ", text);
  KeepBehind("PerformWork() - ", text);
  const bool has_token = !Has(text, kNoToken);
  if (!has_token) KeepBehind("The underlying error message was: ", text);
  return (has_token ? code : "the credentials give no access token") + ": " +
         std::string(text);
}
