#ifndef PARASOL_BASE_STATUS_MATCHERS_H_
#define PARASOL_BASE_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// EXPECT_OK(expr), ASSERT_OK(expr): an absl::Status or StatusOr that is OK.
// ASSERT_OK_AND_ASSIGN(lhs, expr): the value of a StatusOr.
// EXPECT_THAT(expr, StatusIs(code)), EXPECT_THAT(expr, StatusIs(code, matcher
// of the message)), EXPECT_THAT(expr, IsOkAndHolds(matcher of the value)).
namespace parasol {
namespace testing_internal {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& statusor) {
  return statusor.status();
}

}  // namespace testing_internal

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = testing_internal::GetStatus(arg);
  *result_listener << status;
  return status.code() == code &&
         testing::ExplainMatchResult(message, std::string(status.message()),
                                     result_listener);
}
MATCHER_P(StatusIs, code, "") {
  const absl::Status& status = testing_internal::GetStatus(arg);
  *result_listener << status;
  return status.code() == code;
}
MATCHER(IsOk, "") {
  *result_listener << testing_internal::GetStatus(arg);
  return testing_internal::GetStatus(arg).ok();
}
MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace parasol

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::parasol::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::parasol::IsOk())
#define PARASOL_TEST_CONCAT_INNER_(a, b) a##b
#define PARASOL_TEST_CONCAT_(a, b) PARASOL_TEST_CONCAT_INNER_(a, b)
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  PARASOL_ASSERT_OK_AND_ASSIGN_(        \
      PARASOL_TEST_CONCAT_(parasol_test_statusor_, __LINE__), lhs, expr)
#define PARASOL_ASSERT_OK_AND_ASSIGN_(statusor, lhs, expr) \
  auto statusor = (expr);                                  \
  ASSERT_THAT(statusor, ::parasol::IsOk());                \
  lhs = *std::move(statusor)

#endif  // PARASOL_BASE_STATUS_MATCHERS_H_
