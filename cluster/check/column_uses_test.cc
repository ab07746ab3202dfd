#include "cluster/check/column_uses.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Warnings(const std::string& inputs) {
  const auto job = ParseJob(
      absl::StrCat(
          "model { ", inputs,
          " loss { binary_crossentropy {} } } train { csv { file: \"t.csv\" "
          "label { column: \"y\" } } }"),
      "j.textproto");
  EXPECT_OK(job);
  return UseWarnings(job->model(),
                     ColumnUses(*job, "train", job->train(), nullptr));
}

TEST(UseWarningsTest, AnInputThatReadsTheLabelIsNamed) {
  EXPECT_THAT(
      Warnings("input { name: 'n' dense { column { name: 'a' } column { name: "
               "'y' } } } input { name: 'i' ids { column { name: 'y' hash {} } "
               "} }"),
      ElementsAre(HasSubstr("model.input[0].dense.column[1].name: column \"y\" "
                            "is the label: "),
                  HasSubstr("model.input[1].ids.column[0].name[0]: column "
                            "\"y\" is the label: ")));
}

TEST(UseWarningsTest, AColumnThatAnInputHasTwiceAlikeIsNamed) {
  EXPECT_THAT(
      Warnings("input { name: 'i' ids { column { name: 'a' hash {} } column { "
               "name: 'b' hash {} } column { name: 'a' hash {} } } } input { "
               "name: 'n' dense { column { name: 'c' } column { name: 'c' } } "
               "}"),
      ElementsAre(HasSubstr("model.input[0].ids.column[2]: column \"a\" is in "
                            "this input once before"),
                  HasSubstr("model.input[1].dense.column[1]: column \"c\"")));
}

TEST(UseWarningsTest, OtherFormsOfAColumnAndOtherInputsAreNoDoubles) {
  EXPECT_THAT(
      Warnings("input { name: 'n' dense { column { name: 'a' } column { name: "
               "'a' log1p: true } } } input { name: 'i' ids { column { name: "
               "'a' hash {} } column { name: ['a', 'b'] hash {} } } }"),
      IsEmpty());
}

// The label of a sequence may be the id that comes next.
TEST(UseWarningsTest, ASequenceMayReadTheLabelsColumn) {
  EXPECT_THAT(Warnings("input { name: 'i' ids { column { name: 'y' hash {} } "
                       "sequence {} } }"),
              IsEmpty());
}

}  // namespace
}  // namespace parasol
