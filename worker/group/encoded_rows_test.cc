#include "worker/group/encoded_rows.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kWidth = 2;

std::string Rows(int replica, const std::vector<uint64_t>& ids,
                 const std::vector<float>& gradients) {
  return EncodeRows(replica, ids, gradients);
}

absl::StatusOr<RowGradients> Means(const std::vector<std::string>& encoded,
                                   int replicas) {
  RowAccumulator sums(kWidth, /*memory=*/nullptr);
  return MeansOfRows(encoded, kWidth, replicas, sums);
}

TEST(EncodedRowsTest, ARowIsDividedByTheReplicasThatTouchIt) {
  // One worker has the replicas 0 and 2.
  ASSERT_OK_AND_ASSIGN(
      const RowGradients means,
      Means({Rows(0, {7, 9}, {1, 2, 3, 4}) + Rows(2, {7}, {5, 6}),
             Rows(1, {7, 8}, {3, 4, 1, 1})},
            3));
  EXPECT_THAT(means.ids, ElementsAre(7, 9, 8));
  EXPECT_THAT(means.values, ElementsAre(3, 4, 3, 4, 1, 1));
}

TEST(EncodedRowsTest, GradientsAreAddedInTheOrderOfTheReplicas) {
  // 1 is lost beside 2^25 unless the two large ones are added first.
  const float large = 33554432;
  ASSERT_OK_AND_ASSIGN(const RowGradients means,
                       Means({Rows(2, {7}, {1, 0}), Rows(0, {7}, {large, 0}),
                              Rows(1, {7}, {-large, 0})},
                             3));
  EXPECT_EQ(means.values[0], 1.0f / 3);
}

TEST(EncodedRowsTest, AReplicaMayHaveNoRows) {
  ASSERT_OK_AND_ASSIGN(const RowGradients means,
                       Means({Rows(0, {}, {}), Rows(1, {}, {})}, 2));
  EXPECT_TRUE(means.ids.empty());
}

TEST(EncodedRowsTest, BytesThatAreNoRowsAreRefused) {
  const std::string good = Rows(0, {7}, {1, 2});
  std::string many = good;
  many[8] = 100;
  std::string negative = good;
  negative[15] = '\xff';
  struct Case {
    std::vector<std::string> encoded;
    std::string want;
  };
  const Case cases[] = {
      {{good.substr(0, 10)}, "a header is cut off"},
      {{good.substr(0, good.size() - 1)}, "replica 0 has 1 rows, but 15 bytes"},
      {{many}, "replica 0 has 100 rows"},
      {{negative}, "replica 0 has -"},
      {{Rows(1, {}, {})}, "there is no replica 1"},
      {{good, good}, "replica 0 is there twice"},
      {{}, "those of 0 replicas of 1"},
  };
  for (const Case& test : cases) {
    EXPECT_THAT(
        Means(test.encoded, 1),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.want)));
    EXPECT_THAT(
        CheckRows(test.encoded, kWidth, /*replicas=*/1),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.want)));
  }
}

TEST(EncodedRowsTest, CountsOfReplicasAreSummed) {
  const std::vector<uint64_t> ids = {7, 9};
  const std::vector<float> gradients = {1, 2, 3, 4};
  ASSERT_OK_AND_ASSIGN(
      const RowGradients means,
      Means({EncodeRows(0, ids, gradients, {3, 1}) + Rows(2, {7}, {5, 6}),
             EncodeRows(1, ids, gradients, {4, 2})},
            3));
  EXPECT_THAT(means.ids, ElementsAre(7, 9));
  // Where nothing says it, an id occurs as often as it is listed.
  EXPECT_THAT(means.counts, ElementsAre(8, 3));
  const std::string cut = EncodeRows(0, ids, gradients, {3, 1});
  EXPECT_THAT(Means({cut.substr(0, cut.size() - 1)}, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("replica 0 has 2 rows, but 39 bytes")));
}

}  // namespace
}  // namespace parasol
