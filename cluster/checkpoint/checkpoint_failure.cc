#include "cluster/checkpoint/checkpoint_failure.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

absl::StatusCode CodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return absl::StatusCode::kUnavailable;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kFailedPrecondition;
  }
}

}  // namespace

std::string DescribeFailure(int64_t step, int attempts,
                            const absl::Status& status) {
  return absl::StrCat(
      "no checkpoint of step ", step, " in ", attempts,
      attempts == 1 ? " attempt: " : " attempts: ", status.message());
}

absl::Status EndWithoutCheckpoint(int64_t step, absl::Duration limit,
                                  const absl::Status& status) {
  const std::string time =
      limit > absl::ZeroDuration()
          ? absl::StrCat(" in ", absl::FormatDuration(limit))
          : "";
  return absl::Status(
      CodeFor(status),
      absl::StrCat("no checkpoint of step ", step, " could be written", time,
                   ": ", status.message()));
}

}  // namespace parasol
