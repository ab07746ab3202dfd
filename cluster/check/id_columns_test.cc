#include "cluster/check/id_columns.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

job::Model ModelOf(const std::string& columns) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("input { name: 'x' dense {} } input { name: 'c' ids { ",
                   columns, " } }"),
      &model));
  return model;
}

CountsByColumn Counts(const std::vector<std::string>& values) {
  CountsByColumn counts;
  for (const std::string& value : values) counts["city"].Add(value);
  return counts;
}

constexpr char kCities[] =
    "column { name: 'city' vocabulary { value: ['Oslo', 'Rom'] "
    "out_of_vocabulary: 1 } }";

TEST(IdColumnsTest, AVocabularyThatIsNotThatOfTheDataIsNamed) {
  EXPECT_THAT(
      IdColumnWarnings(ModelOf(kCities), Counts({"Oslo", "Rome", "Rome"})),
      ElementsAre(AllOf(HasSubstr("model.input[1].ids.column[0].vocabulary: 1 "
                                  "of 2 values are never seen in column "
                                  "\"city\": \"Rom\""),
                        HasSubstr("did you mean \"Rome\"?")),
                  HasSubstr("66.7 % of the values of column \"city\" are not "
                            "in it, as \"Rome\": they share 1 id")));
  EXPECT_THAT(IdColumnWarnings(ModelOf(kCities), Counts({"Oslo", "Rom"})),
              IsEmpty());
}

TEST(IdColumnsTest, BucketsThatAreSharedAndValuesSeenOnceAreNamed) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back(absl::StrCat("name ", i));
  EXPECT_THAT(
      IdColumnWarnings(ModelOf("column { name: 'city' hash { buckets: 10 } }"),
                       Counts(names)),
      ElementsAre(HasSubstr("200 different values of column \"city\" share 10 "
                            "ids"),
                  HasSubstr("100 % of the values of column \"city\" are seen "
                            "once")));
  EXPECT_THAT(IdColumnWarnings(ModelOf("column { name: 'city' hash {} }"),
                               Counts({"a", "b"})),
              IsEmpty());
}

TEST(IdColumnsTest, VocabulariesAreMadeOfTheMostFrequentValuesFirst) {
  const CountsByColumn counts = Counts({"b", "a", "c", "c"});
  const auto hashed =
      VocabularyChanges(ModelOf("column { name: ['city', 'x'] hash {} } "
                                "column { name: 'city' hash {} }"),
                        counts);
  ASSERT_THAT(hashed, SizeIs(1));
  EXPECT_EQ(hashed[0].path, "model.input[1].ids.column[1]");
  EXPECT_TRUE(hashed[0].replaces_hash);
  EXPECT_THAT(hashed[0].values, ElementsAre("c", "a", "b"));
  const auto listed = VocabularyChanges(
      ModelOf("column { name: 'city' vocabulary { value: 'c' } }"), counts);
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_FALSE(listed[0].replaces_hash);
  EXPECT_THAT(listed[0].values, ElementsAre("a", "b"));
  EXPECT_THAT(
      VocabularyChanges(ModelOf("column { name: 'city' identity {} }"), counts),
      IsEmpty());
}

}  // namespace
}  // namespace parasol
