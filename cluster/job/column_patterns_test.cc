#include "cluster/job/column_patterns.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/input/feature/column_wildcards.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kListed[] =
    "csv { file: \"no.csv\" column: \"y\" column: \"x2\" column: \"x10\" "
    "column: \"x1\" column: \"w\" column: \"city\" column: \"a*b\" "
    "label { column: \"y\" } weight_column: \"w\" }";

job::Job JobOf(const std::string& inputs, const std::string& train = kListed) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("model { ", inputs, " } train { ", train, " }"), &job));
  return job;
}

std::string Dense(const std::string& columns) {
  return absl::StrCat("input { name: \"in\" dense { ", columns, " } }");
}

std::string Ids(const std::string& columns) {
  return absl::StrCat("input { name: \"in\" ids { ", columns, " } }");
}

class ColumnPatternsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Resolved(const job::Job& given) {
    job_ = given;
    Faults faults;
    patterns_ = ColumnPatterns::Resolve(testing::TempDir(), job_, faults);
    faults_.clear();
    for (const absl::Status& fault : faults.all()) {
      faults_.emplace_back(fault.message());
    }
    std::vector<std::string> names;
    for (const auto& column : job_.model().input(0).dense().column()) {
      names.push_back(column.name());
    }
    for (const auto& column : job_.model().input(0).ids().column()) {
      for (const std::string& name : column.name()) names.push_back(name);
    }
    return names;
  }

  job::Job job_;
  ColumnPatterns patterns_;
  std::vector<std::string> faults_;
};

TEST_F(ColumnPatternsTest, MatchesStandInTheOrderOfTheDataWithAllFields) {
  EXPECT_THAT(
      Resolved(JobOf(Dense("column { name: \"city\" } column { name: \"x*\" "
                           "log1p: true default_value: 2 }"))),
      ElementsAre("city", "x2", "x10", "x1"));
  EXPECT_THAT(faults_, IsEmpty());
  const auto& columns = job_.model().input(0).dense().column();
  EXPECT_FALSE(columns[0].log1p());
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(columns[i].log1p());
    EXPECT_EQ(columns[i].default_value(), 2);
  }
  ASSERT_THAT(patterns_.all(), SizeIs(1));
  EXPECT_EQ(patterns_.all()[0].path, "model.input[0].dense.column[1]");
  EXPECT_EQ(patterns_.all()[0].pattern, "x*");
  EXPECT_THAT(patterns_.all()[0].columns, ElementsAre("x2", "x10", "x1"));
}

TEST_F(ColumnPatternsTest, LabelsMasksAndWeightsAreLeftOut) {
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"*\" }"))),
              ElementsAre("x2", "x10", "x1", "city", "a*b"));
  job::Job job =
      JobOf(absl::StrCat(Dense("column { name: \"*\" }"),
                         " output { name: \"o\" label { column: \"x2\" } mask: "
                         "\"x10\" }"));
  job.mutable_eval()->mutable_csv()->set_weight_column("city");
  EXPECT_THAT(Resolved(job), ElementsAre("x1", "a*b"));
}

TEST_F(ColumnPatternsTest, WhatTheInputNamesIsLeftOut) {
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"x*\" } column { name: "
                                   "\"x10\" mean: 3 }"))),
              ElementsAre("x2", "x1", "x10"));
  // A cross does not make ids of its columns alone.
  EXPECT_THAT(Resolved(JobOf(Ids("column { name: \"x?\" hash {} } column { "
                                 "name: \"x1\" name: \"city\" hash {} }"))),
              ElementsAre("x2", "x1", "x1", "city"));
}

TEST_F(ColumnPatternsTest, ANameOfAColumnIsNoPattern) {
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"a*b\" }"))),
              ElementsAre("a*b"));
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"a\\\\*b\" }"))),
              ElementsAre("a*b"));
  EXPECT_THAT(patterns_.all(), IsEmpty());
  EXPECT_THAT(faults_, IsEmpty());
}

TEST_F(ColumnPatternsTest, AMissNamesThePatternAndWhatMayBeMeant) {
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"X*\" }"))),
              ElementsAre("X*"));
  EXPECT_THAT(faults_,
              ElementsAre("model.input[0].dense.column[0].name: \"X*\" matches "
                          "no column of the data; did you mean x2, x10, x1? "
                          "Upper and lower case differ"));
  Resolved(JobOf(Ids("column { name: \"cty?\" hash {} }")));
  EXPECT_THAT(faults_, ElementsAre(AllOf(HasSubstr("\"cty?\""),
                                         HasSubstr("did you mean \"city\"?"))));
  Resolved(JobOf(Dense("column { name: \"w*\" }")));
  EXPECT_THAT(faults_, ElementsAre(HasSubstr("\"w\" matches, but has labels")));
  Resolved(JobOf(Dense("column { name: \"temperature_*\" }")));
  EXPECT_THAT(faults_, ElementsAre(HasSubstr("but y, x2, x10, x1, w, city")));
}

TEST_F(ColumnPatternsTest, TwoPatternsOfOneColumnAndCrossesAreRefused) {
  Resolved(JobOf(Dense("column { name: \"x?\" } column { name: \"*1\" }")));
  EXPECT_THAT(faults_, ElementsAre(AllOf(
                           HasSubstr("column[1].name"),
                           HasSubstr("\"*1\" and \"x?\" both match \"x1\""))));
  Resolved(JobOf(Ids("column { name: \"city\" name: \"x*\" hash {} }")));
  EXPECT_THAT(faults_,
              ElementsAre(HasSubstr("\"x*\" is a pattern, and a cross")));
}

TEST_F(ColumnPatternsTest, ACopyOfALargeVocabularyForEachColumnIsRefused) {
  job::Job job = JobOf(Ids("column { name: \"x*\" vocabulary {} }"));
  job.mutable_model()
      ->mutable_input(0)
      ->mutable_ids()
      ->mutable_column(0)
      ->mutable_vocabulary()
      ->add_value(std::string(6 << 20, 'v'));
  EXPECT_THAT(Resolved(job), ElementsAre("x*"));
  EXPECT_THAT(faults_, ElementsAre(HasSubstr("matches 3 columns")));
}

TEST_F(ColumnPatternsTest, PathsLeadBackToTheFile) {
  Resolved(JobOf(Dense("column { name: \"x*\" } column { name: \"city\" }")));
  EXPECT_EQ(patterns_.InFile("model.input[0].dense.column[2].name: no"),
            "model.input[0].dense.column[0].name: no");
  EXPECT_EQ(patterns_.InFile("model.input[0].dense.column[3]"),
            "model.input[0].dense.column[1]");
  for (const char* other :
       {"model.input[0].dense.column[4]", "model.input[1].dense.column[0]",
        "model.input[0].dense: column[3]", "model.input[0].dense.column[x]",
        "train.csv.column[0]"}) {
    EXPECT_EQ(patterns_.InFile(other), other);
  }
  EXPECT_EQ(patterns_.Of("model.input[0].dense.column[3]"), nullptr);
  ASSERT_NE(patterns_.Of("model.input[0].dense.column[1]"), nullptr);
}

TEST_F(ColumnPatternsTest, AHeaderIsReadOnlyIfItIsNeeded) {
  const std::string train =
      "csv { file: \"patterns_*.csv\" label { column: \"y\" } }";
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"x1\" }"), train)),
              ElementsAre("x1"));
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"a\\\\?\" }"), train)),
              ElementsAre("a?"));
  EXPECT_THAT(faults_, IsEmpty());
  Resolved(JobOf(Dense("column { name: \"x*\" }"), train));
  EXPECT_THAT(
      faults_,
      ElementsAre(AllOf(HasSubstr("model.input[0]: has a pattern"),
                        HasSubstr("patterns_*.csv"), HasSubstr("--data_dir"))));
  std::ofstream(testing::TempDir() + "/patterns_1.csv") << "x2,y,x1\n1,2,3\n";
  EXPECT_THAT(Resolved(JobOf(Dense("column { name: \"x*\" }"), train)),
              ElementsAre("x2", "x1"));
  EXPECT_THAT(faults_, IsEmpty());
}

TEST_F(ColumnPatternsTest, FormatsWithoutColumnsAreRefused) {
  Resolved(JobOf(Dense("column { name: \"x*\" }"),
                 "libsvm { file: \"patterns.txt\" }"));
  EXPECT_THAT(faults_, ElementsAre(HasSubstr("have named columns")));
}

// A checkpoint's job has names, whatever they look like.
TEST_F(ColumnPatternsTest, OnlyAFileHasPatterns) {
  const std::string path = testing::TempDir() + "/patterns.textproto";
  std::ofstream(path) << "model { input { name: \"numbers\" dense { column { "
                         "name: \"I*\" log1p: true } } } layer { dense { "
                         "units: 1 } } loss { binary_crossentropy {} } } train "
                         "{ criteo { file: \"no\" } batch_size: 2 } optimizer "
                         "{ sgd {} } end { steps: 1 }";
  const absl::StatusOr<LoadedJob> loaded = LoadJobFile(path, {});
  ASSERT_OK(loaded);
  const auto& dense = loaded->job.model().input(0).dense();
  ASSERT_THAT(dense.column(), SizeIs(13));
  EXPECT_EQ(dense.column(12).name(), "I13");
  EXPECT_THAT(dense.shape(), ElementsAre(13));
  EXPECT_OK(LoadJobFile(path, {"model.input[0].dense.column[0].mean=3"}));

  job::Job stored = loaded->job;
  stored.mutable_model()
      ->mutable_input(0)
      ->mutable_dense()
      ->mutable_column(0)
      ->set_name("I*");
  const absl::StatusOr<LoadedJob> again = LoadJob(stored, {});
  ASSERT_OK(again);
  EXPECT_EQ(again->job.model().input(0).dense().column(0).name(), "I*");
  EXPECT_THAT(again->job.model().input(0).dense().column(), SizeIs(13));
}

TEST(ColumnWildcardsTest, MatchesAsAShellDoes) {
  const struct {
    const char* pattern;
    const char* name;
    bool want;
  } cases[] = {
      {"I*", "I1", true},
      {"I*", "I", true},
      {"I*", "CI1", false},
      {"I*", "i1", false},
      {"*", "", true},
      {"", "", true},
      {"", "a", false},
      {"I?", "I1", true},
      {"I?", "I", false},
      {"I?", "I12", false},
      {"?", "ä", true},
      {"??", "ä", false},
      {"*_id", "user_id", true},
      {"*_id", "user_id_", false},
      {"a*b*c", "a1b2b3c", true},
      {"a*b*c", "a1c2b", false},
      {"**", "ab", true},
      {"I[1-9]", "I5", true},
      {"I[1-9]", "I0", false},
      {"I[1-9]", "I10", false},
      {"I[!1-9]", "I0", true},
      {"I[^1-9]", "I1", false},
      {"[]a]", "]", true},
      {"[a-]", "-", true},
      {"x[", "x[", true},
      {"x[1", "x[1", true},
      {"x[1", "x1", false},
      {"fraud\\?", "fraud?", true},
      {"fraud\\?", "fraud1", false},
      {"a\\", "a\\", true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(MatchesWildcards(c.pattern, c.name), c.want)
        << c.pattern << " " << c.name;
  }
}

// A matcher that tries all places of all stars would need 2^60 attempts.
TEST(ColumnWildcardsTest, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesWildcards(pattern + "b", std::string(20000, 'a')));
  EXPECT_TRUE(MatchesWildcards(pattern, std::string(20000, 'a')));
}

TEST(ColumnWildcardsTest, ABackslashMakesAName) {
  std::string literal;
  EXPECT_FALSE(HasWildcards("age"));
  EXPECT_TRUE(HasWildcards("price \\[EUR]"));
  EXPECT_TRUE(IsEscapedName("price \\[EUR]", literal));
  EXPECT_EQ(literal, "price [EUR]");
  EXPECT_FALSE(IsEscapedName("a\\*b*", literal));
}

TEST(ColumnWildcardsTest, AnEscapedNameMatchesTheNameAlone) {
  for (const std::string name :
       {"age", "a\\b", "price [EUR]", "a\\*?", "\\", "é*"}) {
    const std::string escaped = EscapedName(name);
    std::string literal;
    EXPECT_TRUE(!HasWildcards(name) || IsEscapedName(escaped, literal));
    EXPECT_EQ(HasWildcards(name) ? literal : escaped, name);
  }
  EXPECT_EQ(EscapedName("I*"), "I\\*");
}

}  // namespace
}  // namespace parasol
