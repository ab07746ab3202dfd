#include "worker/chief_place.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(ChiefPlaceTest, OneProcessHasItUntilItEnds) {
  {
    const auto first = ChiefPlace::Take("worker/0", "127.0.0.1:1");
    ASSERT_OK(first);
    EXPECT_THAT(ChiefPlace::Take("worker/0", "127.0.0.1:1").status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("worker/0 at 127.0.0.1:1")));
    EXPECT_OK(ChiefPlace::Take("worker/0", "127.0.0.1:2"));
  }
  EXPECT_OK(ChiefPlace::Take("worker/0", "127.0.0.1:1"));
}

TEST(ChiefPlaceTest, HostsWithLongNamesHavePlacesOfTheirOwn) {
  const std::string host(250, 'h');
  const auto first = ChiefPlace::Take("worker/0", absl::StrCat(host, ":1"));
  ASSERT_OK(first);
  EXPECT_OK(ChiefPlace::Take("worker/0", absl::StrCat(host, ":2")));
  EXPECT_THAT(ChiefPlace::Take("worker/0", absl::StrCat(host, ":1")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
