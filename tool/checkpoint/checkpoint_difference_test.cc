#include "tool/checkpoint/checkpoint_difference.h"

#include <cmath>
#include <limits>
#include <memory>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

absl::StatusOr<CheckpointDifference> CompareModels(
    const ModelCheckpoint& a, const ModelCheckpoint& b,
    size_t row_bytes = kComparedRowBytes) {
  const std::string directory = EmptyTestDirectory();
  RETURN_IF_ERROR(a.Write(directory + "/a"));
  RETURN_IF_ERROR(b.Write(directory + "/b"));
  ASSIGN_OR_RETURN(const auto reader_a,
                   CheckpointReader::Open(a.PathIn(directory + "/a")));
  ASSIGN_OR_RETURN(const auto reader_b,
                   CheckpointReader::Open(b.PathIn(directory + "/b")));
  return Compare(*reader_a, *reader_b, row_bytes);
}

TEST(CheckpointDifferenceTest, EqualValuesOfOtherStepsAreTheSame) {
  ModelCheckpoint b;
  b.step = 99;
  b.run_id = "fedcba9876543210";
  ASSERT_OK_AND_ASSIGN(const CheckpointDifference difference,
                       CompareModels({}, b));
  EXPECT_TRUE(difference.IsSame(0));
  EXPECT_EQ(ToText(difference, 0),
            "A is of step 12 of run 0123456789abcdef, B of step 99 of run "
            "fedcba9876543210: same values\n");
}

TEST(CheckpointDifferenceTest, LargestDifferenceOfEachArrayIsFound) {
  ModelCheckpoint b;
  b.kernel[1] = -2.5;
  b.kernel[5] = 2;
  b.v[0] = 0.25;
  ASSERT_OK_AND_ASSIGN(const CheckpointDifference difference,
                       CompareModels({}, b));
  ASSERT_EQ(difference.arrays.size(), 3);
  EXPECT_EQ(difference.arrays[0].name, "dense/kernel");
  EXPECT_EQ(difference.arrays[0].differing, 2);
  EXPECT_EQ(difference.arrays[0].largest, 8);
  EXPECT_EQ(difference.arrays[1].differing, 0);
  EXPECT_EQ(difference.arrays[2].name, "dense/kernel, slot v");
  EXPECT_EQ(difference.arrays[2].largest, 0.25);
  EXPECT_FALSE(difference.IsSame(7.5));
  EXPECT_TRUE(difference.IsSame(8));
  EXPECT_THAT(ToText(difference, 1),
              HasSubstr("dense/kernel: 2 of 6 elements differ, by 8 at most"));
}

TEST(CheckpointDifferenceTest, NanEqualsOnlyNan) {
  ModelCheckpoint a;
  a.kernel[0] = kNan;
  a.kernel[1] = kNan;
  ModelCheckpoint b;
  b.kernel[0] = kNan;
  ASSERT_OK_AND_ASSIGN(const CheckpointDifference difference,
                       CompareModels(a, b));
  EXPECT_EQ(difference.arrays[0].differing, 1);
  EXPECT_TRUE(std::isinf(difference.arrays[0].largest));
  EXPECT_TRUE(
      nlohmann::json::parse(ToJson(difference, 0))["arrays"][0]["largest"]
          .is_null());
}

TEST(CheckpointDifferenceTest, RowsAreComparedByTheirIds) {
  ModelCheckpoint b;
  b.users[7][5] = 3;  // a slot
  b.users.erase(uint64_t{1} << 63);
  b.users[8] = {0, 0, 0, 0, 0, 0};
  // The result is the same if few rows fit into memory.
  for (const size_t row_bytes : {kComparedRowBytes, size_t{10}}) {
    ASSERT_OK_AND_ASSIGN(const CheckpointDifference difference,
                         CompareModels({}, b, row_bytes));
    ASSERT_EQ(difference.tables.size(), 1);
    const TableDifference& users = difference.tables[0];
    EXPECT_EQ(users.rows_a, 2);
    EXPECT_EQ(users.rows_b, 2);
    EXPECT_EQ(users.only_in_a, 1);
    EXPECT_EQ(users.only_in_b, 1);
    EXPECT_EQ(users.differing, 1);
    EXPECT_EQ(users.largest, 3);
    EXPECT_FALSE(difference.IsSame(100));
  }
}

TEST(CheckpointDifferenceTest, OtherShapesAreNamedAndNotCompared) {
  ModelCheckpoint b;
  b.shape = {3, 2};
  ASSERT_OK_AND_ASSIGN(const CheckpointDifference difference,
                       CompareModels({}, b));
  EXPECT_THAT(difference.structure,
              ElementsAre("variable dense/kernel has the shape [2,3] in A and "
                          "the shape [3,2] in B"));
  EXPECT_THAT(difference.arrays, IsEmpty());
  EXPECT_FALSE(difference.IsSame(100));
}

}  // namespace
}  // namespace parasol
