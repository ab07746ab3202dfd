#include "ml/input/file/open_error.h"

#include <cerrno>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OpenErrorTest, WhatMayPassIsUnavailable) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    EXPECT_THAT(
        OpenError("/data/part-7", error),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/data/part-7: ")));
  }
  for (const int error : {EMFILE, ENFILE}) {
    EXPECT_THAT(OpenError("/data/part-7", error),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("/data/part-7: Too many open files"),
                               HasSubstr("ulimit -n"))));
  }
}

TEST(OpenErrorTest, AFileThatIsNotThereOrNotAllowedDoesNotPass) {
  EXPECT_THAT(OpenError("/data/part-7", ENOENT),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/data/part-7")));
  EXPECT_THAT(
      OpenError("/data/part-7", EACCES),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/data/part-7")));
}

}  // namespace
}  // namespace parasol
