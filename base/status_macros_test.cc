#include "base/status_macros.h"

#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;

absl::Status Annotate(absl::Status inner) {
  RETURN_IF_ERROR(inner) << "shard " << 3;
  return absl::OkStatus();
}

absl::StatusOr<int> Double(absl::StatusOr<int> inner) {
  ASSIGN_OR_RETURN(const int value, inner, _ << "doubling");
  return 2 * value;
}

absl::StatusOr<int> Plain(absl::StatusOr<int> inner) {
  ASSIGN_OR_RETURN(const int value, inner);
  return value;
}

TEST(StatusMacrosTest, ErrorKeepsItsCodeAndPayloadAndGainsTheWords) {
  absl::Status inner = absl::NotFoundError("no such part");
  inner.SetPayload("parasol/part", absl::Cord("dense/kernel"));

  const absl::Status outer = Annotate(inner);

  EXPECT_THAT(outer, StatusIs(absl::StatusCode::kNotFound,
                              Eq("shard 3: no such part")));
  EXPECT_EQ(outer.GetPayload("parasol/part"), absl::Cord("dense/kernel"));
}

TEST(StatusMacrosTest, OkFallsThrough) {
  EXPECT_OK(Annotate(absl::OkStatus()));
  EXPECT_THAT(Double(21), IsOkAndHolds(42));
}

TEST(StatusMacrosTest, AssignReturnsTheAnnotatedError) {
  EXPECT_THAT(Double(absl::AbortedError("stale")),
              StatusIs(absl::StatusCode::kAborted, Eq("doubling: stale")));
  EXPECT_THAT(Plain(absl::AbortedError("stale")),
              StatusIs(absl::StatusCode::kAborted, Eq("stale")));
}

}  // namespace
}  // namespace parasol
