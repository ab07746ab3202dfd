#include "tool/checkpoint/row_ids.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RowIdsTest : public testing::Test {
 protected:
  void Write(const ModelCheckpoint& a, const ModelCheckpoint& b) {
    const std::string directory = EmptyTestDirectory();
    ASSERT_OK(a.Write(directory + "/a"));
    ASSERT_OK(b.Write(directory + "/b"));
    ASSERT_OK_AND_ASSIGN(a_,
                         CheckpointReader::Open(a.PathIn(directory + "/a")));
    ASSERT_OK_AND_ASSIGN(b_,
                         CheckpointReader::Open(b.PathIn(directory + "/b")));
  }
  // Returns "-1" for an id 1 of A alone, "+2" for an id 2 of B alone.
  std::vector<std::string> Compared(size_t ids_at_a_time = kComparedIds) {
    std::vector<std::string> lines;
    EXPECT_OK(CompareRowIds(
        *a_, *b_, "users",
        [&](uint64_t id) { lines.push_back(absl::StrCat("-", id)); },
        [&](uint64_t id) { lines.push_back(absl::StrCat("+", id)); },
        ids_at_a_time));
    return lines;
  }

  std::unique_ptr<CheckpointReader> a_;
  std::unique_ptr<CheckpointReader> b_;
};

TEST_F(RowIdsTest, IdsOfOneCheckpointAloneAreVisited) {
  ModelCheckpoint a;
  ModelCheckpoint b;
  const std::vector<float> row(6, 1);
  a.users.clear();
  b.users.clear();
  a.users = {{0, row}, {7, row}, {9, row}, {UINT64_MAX, row}};
  b.users = {{3, row}, {7, std::vector<float>(6, 2)}, {1000, row}};
  Write(a, b);
  EXPECT_THAT(Compared(), ElementsAre("-0", "-9", absl::StrCat("-", UINT64_MAX),
                                      "+3", "+1000"));
  for (const size_t few : {1, 2, 3}) {
    EXPECT_THAT(Compared(few),
                UnorderedElementsAre("-0", "-9", absl::StrCat("-", UINT64_MAX),
                                     "+3", "+1000"));
  }
}

TEST_F(RowIdsTest, TheSameIdsAreNone) {
  Write({}, {});
  EXPECT_THAT(Compared(), ElementsAre());
}

TEST_F(RowIdsTest, ATableThatIsNotThereIsNamed) {
  Write({}, {});
  EXPECT_THAT(
      CompareRowIds(
          *a_, *b_, "clicks", [](uint64_t) {}, [](uint64_t) {}),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("--row_ids=clicks: A has no such table; it has "
                         "users")));
}

}  // namespace
}  // namespace parasol
