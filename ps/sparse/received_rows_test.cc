#include "ps/sparse/received_rows.h"

#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

PayloadView ViewOf(const std::vector<uint64_t>& ids, bool may_change) {
  return PayloadView(
      {absl::string_view(reinterpret_cast<const char*>(ids.data()),
                         ids.size() * sizeof(uint64_t))},
      may_change);
}

std::vector<uint64_t> IdsOf(const ReceivedRows& rows) {
  std::vector<uint64_t> ids(rows.count());
  std::memcpy(ids.data(), rows.ids(), ids.size() * sizeof(uint64_t));
  return ids;
}

TEST(ReceivedRowsTest, IdsAreReadWhereTheyAre) {
  const std::vector<uint64_t> ids = {3, 1, 4};
  const PayloadView payload = ViewOf(ids, /*may_change=*/false);
  const auto rows = ReceivedRows::Create(payload, 3);
  ASSERT_OK(rows);
  EXPECT_EQ(rows->ids(), reinterpret_cast<const std::byte*>(ids.data()));
}

TEST(ReceivedRowsTest, IdsThatTheSenderMayChangeAreCopied) {
  std::vector<uint64_t> ids = {3, 1, 4};
  const PayloadView payload = ViewOf(ids, /*may_change=*/true);
  const auto rows = ReceivedRows::Create(payload, 3);
  ASSERT_OK(rows);
  ids = {9, 9, 9};
  EXPECT_EQ(IdsOf(*rows), (std::vector<uint64_t>{3, 1, 4}));
}

TEST(ReceivedRowsTest, AnotherNumberOfIdsIsInvalid) {
  const std::vector<uint64_t> ids = {3, 1, 4};
  const PayloadView payload = ViewOf(ids, /*may_change=*/true);
  EXPECT_THAT(ReceivedRows::Create(payload, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
