#include "cluster/check/check_job_and_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "cluster/check/start_check.h"
#include "cluster/job/check_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/arrow_environment.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/npy_header.h"
#include "tool/check/adapted_text.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kJob[] = R"(# Who buys what.
model {
  input { name: "numbers" dense {
    column { name: "age" default_value: 30 }  # years
    column { name: "income" log1p: true }
  } }
  input { name: "user" ids { column { name: "user" hash {} } } }
  sparse_table { name: "users" width: 4 }
  layer { name: "bag" input: "user" embedding_bag { table: "users" } }
  layer { input: "numbers" input: "bag" concatenate {} }
  layer { dense { units: 1 } }
  loss { binary_crossentropy {} }
}
train { csv { file: "train.csv" label { column: "bought" positive: "yes" } }
        batch_size: 2 }
eval { csv { file: "eval.csv" label { column: "bought" positive: "yes" } } }
optimizer { adam {} }
end { epochs: 3 }
)";

class CheckJobAndDataTest : public ::testing::Test {
 protected:
  CheckJobAndDataTest() {
    Write("train.csv",
          "user,age,income,bought,colour\n"
          "a,20,0,yes,\n"
          "b,,1,no,red\n"
          "a,40,7,no,\n"
          "c,30,0,no,\n");
    Write("eval.csv", "user,age,income,bought\na,20,0,yes\nb,30,1,no\n");
  }

  static void Write(const std::string& name, const std::string& text) {
    std::ofstream(testing::TempDir() + "/" + name) << text;
  }

  // Checks the job after `changes` of its text.
  JobReport Check(
      const std::vector<std::pair<std::string, std::string>>& changes = {},
      CheckOptions options = {}) {
    std::string text = kJob;
    for (const auto& [from, to] : changes) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), from.size(), to);
    }
    path_ = testing::TempDir() + "/job.textproto";
    std::ofstream(path_) << text;
    options.data_dir = testing::TempDir();
    absl::StatusOr<CheckedJob> job =
        CheckedJob::Read(path_, {}, testing::TempDir());
    EXPECT_OK(job);
    JobReport report = CheckJobAndData(*job, options);
    ExpectStartSaysTheSame(report, options);
    left_out_.clear();
    adapted_ = AdaptedText(*job, report, left_out_);
    for (std::string& fault : report.faults) {
      EXPECT_EQ(fault.find(path_), 0) << fault;
      fault = fault.substr(path_.size() + 1);
    }
    return report;
  }

  // One place decides: launcher, chief and workers refuse what is a fault here,
  // and say what is a warning, in the same words.
  void ExpectStartSaysTheSame(const JobReport& report,
                              const CheckOptions& options) {
    StartReport start;
    ASSERT_OK_AND_ASSIGN(
        const auto loaded,
        CheckStart({.path = path_,
                    .options = options,
                    .checkpoint_directory = testing::TempDir() + "/none"},
                   start));
    EXPECT_EQ(start.faults, report.faults);
    EXPECT_EQ(loaded.has_value(), report.faults.empty());
    const bool is_partial = std::any_of(
        report.data_sets.begin(), report.data_sets.end(),
        [](const DatasetReport& data) { return data.is_partial(); });
    if (!is_partial && options.max_examples == CheckOptions().max_examples) {
      EXPECT_EQ(start.warnings, report.warnings);
    }
    // A worker that has the job from its chief.
    if (!loaded.has_value()) return;
    const StartReport worker =
        CheckTrainingData(loaded->job, loaded->graph, options.data_dir);
    EXPECT_THAT(worker.faults, IsEmpty());
  }

  std::string path_;
  std::string adapted_;
  std::vector<std::string> left_out_;
};

TEST_F(CheckJobAndDataTest, AGoodJobIsDescribed) {
  const JobReport report = Check();
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(report.warnings, IsEmpty());
  ASSERT_THAT(report.data_sets, SizeIs(2));
  const DatasetReport& train = report.data_sets[0];
  EXPECT_EQ(train.examples, 4);
  EXPECT_EQ(train.looked_at, 4);
  ASSERT_THAT(train.columns, SizeIs(5));
  EXPECT_EQ(train.columns[0].use, "input user");
  EXPECT_EQ(train.columns[0].texts, 4);
  EXPECT_EQ(train.columns[1].missing, 1);
  EXPECT_EQ(train.columns[1].numbers.count, 3);
  EXPECT_EQ(train.columns[1].numbers.mean, 30);
  EXPECT_EQ(train.columns[3].use, "label");
  EXPECT_EQ(train.columns[4].use, "");
  EXPECT_EQ(train.columns[4].missing, 3);
  EXPECT_EQ(train.labels[0].numbers.mean, 0.25);
  ASSERT_THAT(train.rows, SizeIs(4));
  EXPECT_THAT(train.rows[1], HasSubstr("numbers [30, 0.69315]  user ["));
  EXPECT_THAT(train.rows[0], HasSubstr("label 1"));
}

TEST_F(CheckJobAndDataTest, AllColumnsAndFilesThatAreMissingAreNamed) {
  const JobReport report =
      Check({{"\"age\"", "\"agee\""},
             {"\"income\"", "\"incme\""},
             {"{ column { name: \"user\"", "{ column { name: \"usr\""},
             {"column: \"bought\" positive: \"yes\" } }\n        b",
              "column: \"Bought\" positive: \"yes\" } }\n        b"},
             {"eval.csv\"", "evall.csv\""}});
  EXPECT_THAT(
      report.faults,
      ElementsAre(
          HasSubstr("4:14: model.input[0].dense.column[0].name: the train data "
                    "have no column \"agee\", but user, age, income, bought, "
                    "colour; did you mean \"age\"?"),
          HasSubstr("5:14: model.input[0].dense.column[1].name: "),
          HasSubstr("7:39: model.input[1].ids.column[0].name[0]: "),
          HasSubstr("14:41: train.csv.label.column: the train data have no "
                    "column \"Bought\""),
          HasSubstr("16:14: eval.csv.file[0]: there is no file")));
  EXPECT_THAT(report.faults.back(), HasSubstr("did you mean \"eval.csv\"?"));
}

TEST_F(CheckJobAndDataTest, AClassThatIsNeverSeenIsAWarning) {
  const JobReport report = Check({{"positive: \"yes\"", "positive: \"Yes\""}});
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(
      report.warnings,
      ElementsAre(
          HasSubstr("train: all 4 labels are 0; class 1 is never seen"),
          HasSubstr("train.csv.label.positive[0]: \"Yes\" is never seen in "
                    "column \"bought\", which has \"no\" (66.7 %), \"yes\" "
                    "(33.3 %); did you mean \"yes\"?")));
}

TEST_F(CheckJobAndDataTest, ATextThatOneDataSetHasIsNoTypo) {
  Write("eval.csv", "user,age,income,bought\na,20,0,Yes.\nb,30,1,no\n");
  const std::string both = "positive: [\"yes\", \"Yes.\"]";
  const JobReport report =
      Check({{"positive: \"yes\"", both}, {"positive: \"yes\"", both}});
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_THAT(ToText(report), HasSubstr("  labels: 0 75 %, 1 25 %\n"));
}

TEST_F(CheckJobAndDataTest, OfSeveralClassesTheUnseenOnesAreNamed) {
  const JobReport report =
      Check({{"units: 1 ", "units: 3 "},
             {"binary_crossentropy", "sparse_categorical_crossentropy"}});
  ASSERT_THAT(report.data_sets, SizeIs(2));
  ASSERT_THAT(report.data_sets[0].labels[0].classes, SizeIs(3));
  EXPECT_EQ(report.data_sets[0].labels[0].classes[0].examples, 3);
  EXPECT_EQ(report.data_sets[0].labels[0].classes[1].examples, 1);
  EXPECT_THAT(report.warnings,
              Contains("train: of 3 classes 1 is never seen: 2"));
}

TEST_F(CheckJobAndDataTest, AColumnThatIsThereTwiceIsAFaultIfTheJobReadsIt) {
  Write("train.csv",
        "user,age,age,income,bought,note,note\n"
        "a,20,1,0,yes,,\nb,1,2,1,no,,\n");
  const JobReport report = Check();
  ASSERT_THAT(report.faults, SizeIs(1));
  EXPECT_THAT(report.faults[0],
              HasSubstr("4:14: model.input[0].dense.column[0].name: the data "
                        "have 2 columns \"age\", number 2 and 3"));
  const JobReport pattern = Check({{"\"age\"", "\"a*\""}});
  ASSERT_THAT(pattern.faults, SizeIs(1));
  EXPECT_THAT(pattern.faults[0],
              HasSubstr("\"a*\" matches \"age\", which several columns"));
}

TEST_F(CheckJobAndDataTest, APatternPassesOverColumnsWithoutANames) {
  Write("train.csv", ",age,,income,bought\n0,20,1,0,yes\n1,1,2,1,no\n");
  Write("eval.csv", ",age,,income,bought\n0,20,1,0,yes\n1,1,2,1,no\n");
  const JobReport report = Check(
      {{"column { name: \"age\" default_value: 30 }", ""},
       {"column { name: \"income\" log1p: true }", "column { name: \"*\" }"},
       {"{ column { name: \"user\" hash {} } }",
        "{ column { name: \"age\" hash {} } }"}});
  EXPECT_THAT(report.faults, IsEmpty());
  ASSERT_THAT(report.patterns, SizeIs(1));
  EXPECT_THAT(report.patterns[0].columns, ElementsAre("age", "income"));
}

TEST_F(CheckJobAndDataTest, FilesOfOtherFormatsAreKnown) {
  Write("train.csv", std::string("PK\x03\x04\x14\0\0\0", 8));
  EXPECT_THAT(Check().faults,
              Contains(HasSubstr("train.csv: is a zip archive")));
  Write("train.csv", "");
  EXPECT_THAT(Check().faults,
              Contains(HasSubstr("the file has no line of columns' names")));
}

TEST_F(CheckJobAndDataTest, ADamagedTfRecordIsNamedBeforeItsColumns) {
  for (const std::string bytes : {"", "short", "twelve bytes and more"}) {
    for (const char* skip : {"", " on_corrupt: SKIP"}) {
      Write("train.tfrecord", bytes);
      const JobReport report =
          Check({{"csv { file: \"train.csv\" label { column: \"bought\" "
                  "positive: \"yes\" } }",
                  absl::StrCat("tfrecord { file: \"train.tfrecord\" label: "
                               "\"bought\" }",
                               skip)}});
      ASSERT_THAT(report.faults, testing::Not(IsEmpty()));
      for (const std::string& fault : report.faults) {
        EXPECT_THAT(fault, HasSubstr("train.tfrecord"));
        EXPECT_THAT(fault, testing::Not(HasSubstr("but none")));
      }
    }
  }
}

TEST_F(CheckJobAndDataTest, ColumnsOfParquetFilesAreLookedAt) {
  const std::string lacks = ArrowLacks();
  if (!lacks.empty()) GTEST_SKIP() << lacks;
  for (const std::string name : {"part_0.parquet", "other_types.parquet"}) {
    std::filesystem::copy_file(
        "ml/input/arrow/testdata/" + name, testing::TempDir() + "/" + name,
        std::filesystem::copy_options::overwrite_existing);
  }
  const auto job = [](const std::string& file, const std::string& user) {
    const auto parquet = [&file](absl::string_view set) {
      return std::pair(
          absl::StrCat("csv { file: \"", set,
                       ".csv\" label { column: \"bought\" "
                       "positive: \"yes\" } }"),
          absl::StrCat("parquet { file: \"", file,
                       "\" label { column: \"clicked\" positive: \"yes\" } "
                       "}"));
    };
    return std::vector<std::pair<std::string, std::string>>{
        parquet("train"),
        parquet("eval"),
        {"\"income\"", "\"weight\""},
        {"column { name: \"user\"",
         absl::StrCat("column { name: \"", user, "\"")}};
  };
  const JobReport good = Check(job("part_0.parquet", "user"));
  EXPECT_THAT(good.faults, IsEmpty());
  ASSERT_THAT(good.data_sets, SizeIs(2));
  EXPECT_EQ(good.data_sets.front().examples, 11);
  const JobReport misspelt = Check(job("part_0.parquet", "usr"));
  EXPECT_THAT(misspelt.faults,
              Contains(AllOf(HasSubstr("the train data have no column \"usr\""),
                             HasSubstr("did you mean \"user\"?"))));
  EXPECT_THAT(Check(job("other_types.parquet", "day")).faults,
              Contains(AllOf(HasSubstr("other_types.parquet: column \"day\" is "
                                       "date32, which is not read"))));
}

TEST_F(CheckJobAndDataTest, ControlCharactersDoNotReachTheTerminal) {
  Write("train.csv",
        "user,age,income,bought,\x1b[31mred\na,20,0,yes,1\nb,1,1,no,2\n");
  const JobReport report = Check({{"\"age\"", "\"agee\\033\""}});
  for (const std::string& text :
       {ToText(report), absl::StrJoin(report.faults, " "),
        absl::StrJoin(report.warnings, " ")}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
  EXPECT_THAT(ToText(report), HasSubstr("column \\x1b[31mred"));
}

TEST_F(CheckJobAndDataTest, AStepLargerThanTheDataIsAWarning) {
  const std::string warning =
      "train.batch_size: a step has 1000 examples, more than all 4 training "
      "examples: an epoch is one step";
  EXPECT_THAT(Check({{"batch_size: 2", "batch_size: 1000"}}).warnings,
              ElementsAre(warning));
  // In whatever way the job ends, and of all replicas of a step.
  EXPECT_THAT(
      Check({{"batch_size: 2", "batch_size: 500"},
             {"epochs: 3", "steps: 3"},
             {"optimizer { adam {} }",
              "optimizer { adam {} } parameter_server { synchronous {} }"}},
            {.workers = 2})
          .warnings,
      ElementsAre(warning));
}

// What places variables refuses it, too, under a name that the job has not.
TEST_F(CheckJobAndDataTest, AFaultOfTheOptimizerIsToldOnce) {
  EXPECT_THAT(Check({{"adam {}", "adagrad { learning_rate: -1 }"}}).faults,
              ElementsAre(AllOf(HasSubstr("adagrad.learning_rate"),
                                Not(HasSubstr("parameter_server")))));
}

TEST_F(CheckJobAndDataTest, SettingsWithWhichNothingIsTrainedAreWarnings) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"width: 4", "width: 4 admission { min_count: 7 }"},
      {"adam {}", "lazy_adam { learning_rate: 1e-50 }"}};
  EXPECT_THAT(
      Check(changes).warnings,
      ElementsAre(HasSubstr("admission.min_count: is 7, but no id of table "
                            "\"users\" comes more than 6 times in 3 epochs"),
                  HasSubstr("optimizer.lazy_adam.learning_rate: is 1e-50, 0 as "
                            "float32")));
  EXPECT_THAT(
      Check({{"width: 4", "width: 4 admission { min_count: 6 }"}}).warnings,
      IsEmpty());
}

TEST_F(CheckJobAndDataTest, AnInputThatReadsTheLabelIsAWarning) {
  EXPECT_THAT(Check({{"column { name: \"user\" hash {} }",
                      "column { name: \"bought\" hash {} }"}})
                  .warnings,
              Contains(HasSubstr("column \"bought\" is the label")));
}

TEST_F(CheckJobAndDataTest, CorruptRecordsAreAFaultOfTheData) {
  Write("train.csv", "user,age,income,bought\na,old,1,yes\nb,1,2,no\n");
  const JobReport report = Check();
  ASSERT_THAT(report.faults, SizeIs(1));
  EXPECT_THAT(report.faults[0],
              testing::AllOf(HasSubstr("14:1: train: "), HasSubstr("line 2"),
                             HasSubstr("\"old\" is not a finite")));
}

// What its labels are is in code that this program does not have.
TEST_F(CheckJobAndDataTest,
       ACustomLossIsNamedRatherThanTheLabelsThatItMayWant) {
  const JobReport report =
      Check({{"units: 1", "units: 3"},
             {"binary_crossentropy {}", "custom { type: \"mine\" }"}});
  ASSERT_THAT(report.faults, SizeIs(2));
  EXPECT_THAT(report.faults[0],
              HasSubstr("train: model.loss: this program has no custom loss "
                        "\"mine\""));
  EXPECT_THAT(report.faults[1], HasSubstr("eval: model.loss: this program"));
}

TEST_F(CheckJobAndDataTest, MeansAreFilledInWithoutTouchingTheRest) {
  const JobReport report = Check();
  ASSERT_THAT(report.normalizations, SizeIs(2));
  // The default value stands for the missing one.
  EXPECT_EQ(report.normalizations[0].mean[0], 30);
  EXPECT_THAT(report.normalizations[0].stddev[0], DoubleNear(7.0710678, 1e-6));
  // Of log(1 + x).
  EXPECT_THAT(report.normalizations[1].mean[0], DoubleNear(0.693147, 1e-5));
  EXPECT_THAT(left_out_, IsEmpty());
  EXPECT_THAT(adapted_, HasSubstr("# Who buys what."));
  EXPECT_THAT(adapted_,
              HasSubstr("column { name: \"age\" default_value: 30 mean: 30 "
                        "stddev: 7.07106781 }  # years\n"));
  std::ofstream(path_) << adapted_;
  absl::StatusOr<CheckedJob> job = CheckedJob::Read(path_, {});
  ASSERT_OK(job);
  EXPECT_THAT(job->faults(), IsEmpty());
  const JobReport again =
      CheckJobAndData(*job, {.data_dir = testing::TempDir()});
  EXPECT_THAT(again.normalizations, IsEmpty());
  // As the model sees them now.
  EXPECT_THAT(again.data_sets[0].rows[1], HasSubstr("numbers [0, "));
}

TEST_F(CheckJobAndDataTest, PatternsAreShownAndLeadToTheirPlaces) {
  const std::string age =
      "column { name: \"age\" default_value: 30 }  # years\n"
      "    column { name: \"income\" log1p: true }";
  const JobReport report =
      Check({{age, "column { name: \"?[gn]*e\" default_value: 1 }"}});
  EXPECT_THAT(report.faults, IsEmpty());
  ASSERT_THAT(report.patterns, SizeIs(1));
  EXPECT_EQ(report.patterns[0].path, "model.input[0].dense.column[0]");
  EXPECT_THAT(report.patterns[0].columns, ElementsAre("age", "income"));
  EXPECT_THAT(ToText(report),
              HasSubstr("pattern ?[gn]*e, model.input[0].dense.column[0]: 2 "
                        "columns: age, income\n"));
  const auto json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["patterns"][0]["pattern"], "?[gn]*e");
  // Both have one place in the file, and means of their own.
  ASSERT_THAT(report.normalizations, SizeIs(2));
  EXPECT_EQ(report.normalizations[1].path, "model.input[0].dense.column[0]");
}

TEST_F(CheckJobAndDataTest, APatternAtFaultIsOneFaultBesideOthers) {
  const JobReport report = Check(
      {{"\"age\"", "\"aage*\""}, {"adam {}", "adam { learning_rate: -1 }"}});
  EXPECT_THAT(
      report.faults,
      ElementsAre(HasSubstr("4:14: model.input[0].dense.column[0].name: "
                            "\"aage*\" matches no column of the data; did you "
                            "mean \"age\"?"),
                  HasSubstr("learning_rate")));
}

TEST_F(CheckJobAndDataTest, AFaultBehindAPatternHasItsOwnPlace) {
  const JobReport report = Check(
      {{"{ name: \"user\" hash {} }",
        "{ name: \"[uc]*\" hash {} } column { name: \"colou\" hash {} }"}});
  ASSERT_THAT(report.faults, SizeIs(2));
  EXPECT_THAT(report.faults[0],
              HasSubstr("7:72: model.input[1].ids.column[1].name[0]: the train "
                        "data have no column \"colou\""));
  // A match of the training data.
  EXPECT_THAT(report.faults[1],
              HasSubstr("7:39: model.input[1].ids.column[0].name[0]: the eval "
                        "data have no column \"colour\""));
}

TEST_F(CheckJobAndDataTest, AColumnOfOneValueIsAWarning) {
  Write("train.csv", "user,age,income,bought\na,5,1,yes\nb,5,2,no\n");
  EXPECT_THAT(Check().warnings,
              ElementsAre(HasSubstr("model.input[0].dense.column[0].name: all "
                                    "values of column \"age\" of the train "
                                    "data are 5")));
}

TEST_F(CheckJobAndDataTest, TheEndAndTheMemoryFollowFromJobAndData) {
  const JobReport report = Check({}, {.ps = 2});
  EXPECT_EQ(report.end_step, 6);  // 3 epochs of 4 examples in batches of 2
  ASSERT_THAT(report.memory, SizeIs(4));
  // A kernel of 6 and a bias with Adam's two slots, on one of the ps; half of
  // the 3 rows of 4 on each, with the same slots.
  const int64_t rows = 3 * (4 * 4 * 3 + 32) / 2;
  EXPECT_EQ(report.memory[0].bytes + report.memory[1].bytes,
            7 * 4 * 3 + 2 * rows);
  EXPECT_EQ(report.memory[0].role, "ps/0");
  EXPECT_GT(report.memory[2].bytes, 4 * 7 * 4);
}

TEST_F(CheckJobAndDataTest, StatisticsAreOfTheFirstExamples) {
  const JobReport report = Check({}, {.max_examples = 1});
  EXPECT_EQ(report.data_sets[0].columns[1].records, 1);
  EXPECT_EQ(report.data_sets[0].examples, 4);
}

TEST_F(CheckJobAndDataTest, EpochsCountTheirSmallerLastBatches) {
  Write("train.csv",
        "user,age,income,bought\na,5,1,yes\nb,6,2,no\na,7,1,yes\nb,8,2,no\n"
        "a,9,1,yes\n");
  const JobReport report = Check();
  EXPECT_EQ(report.end_step, 9);  // 3 epochs of 5 examples in batches of 2
  EXPECT_THAT(ToText(report),
              HasSubstr("\nend: step 9, after 3 epochs of 5 examples"));
}

TEST_F(CheckJobAndDataTest, AJobWithFaultsHasItsColumnsCheckedAllTheSame) {
  const JobReport report = Check(
      {{"units: 1", "units: 0"}, {"\"age\"", "\"agee\""}, {"adam", "adamm"}});
  EXPECT_THAT(report.faults,
              ElementsAre(HasSubstr("column \"agee\""),
                          HasSubstr("model.layer[2].dense.units: 0"),
                          HasSubstr("did you mean \"adam\"?")));
  EXPECT_THAT(ToText(report),
              HasSubstr("train: no examples are made, because of faults\n"));
}

// Arrays of float32, as numpy.save writes them.
std::string Npy(const std::vector<int64_t>& shape,
                const std::vector<float>& values) {
  return NpyHeader({"", ElementType::kFloat32, shape}) +
         std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

TEST_F(CheckJobAndDataTest, ArraysAreColumns) {
  Write("numbers.npy", Npy({3, 2}, {20, 0, 30, 1, 40, 7}));
  Write("user.npy", Npy({3}, {1, 2, 1}));
  Write("bought.npy", Npy({3}, {1, 0, 0}));
  constexpr char kArrays[] =
      "array { array { name: 'numbers' file: 'numbers.npy' } array { name: "
      "'user' file: 'user.npy' } array { name: 'bought' file: 'bought.npy' } "
      "label: 'bought' }";
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"dense {\n    column { name: \"age\" default_value: 30 }  # years\n"
       "    column { name: \"income\" log1p: true }\n  }",
       "dense { shape: 2 }"},
      {"csv { file: \"train.csv\" label { column: \"bought\" positive: "
       "\"yes\" } }",
       kArrays},
      {"csv { file: \"eval.csv\" label { column: \"bought\" positive: "
       "\"yes\" } }",
       "array { array { name: 'numbers' file: 'numbers.npy' } array { name: "
       "'user' file: 'user.npy' } array { name: 'bought' file: 'bought.npy' } "
       "}"}};
  const JobReport report = Check(changes);
  EXPECT_THAT(report.faults, IsEmpty());
  ASSERT_THAT(report.data_sets, SizeIs(2));
  EXPECT_EQ(report.data_sets[0].examples, 3);
  ASSERT_THAT(report.data_sets[0].columns, SizeIs(3));
  EXPECT_EQ(report.data_sets[0].columns[0].use, "input numbers");
  EXPECT_EQ(report.data_sets[0].columns[0].numbers.count, 6);
  EXPECT_EQ(report.data_sets[0].columns[2].use, "label");
  // The label's name is train's.
  EXPECT_EQ(report.data_sets[1].labels[0].examples, 3);

  Write("bought.npy", Npy({2}, {1, 0}));
  EXPECT_THAT(Check(changes).faults, Contains(HasSubstr("has 3 examples, and "
                                                        "\"bought\" 2")));
  std::vector<std::pair<std::string, std::string>> missing = changes;
  missing.push_back({"'user.npy'", "'usr.npy'"});
  EXPECT_THAT(Check(missing).faults,
              Contains(AllOf(HasSubstr("train.array.array[1].file: there is no "
                                       "file"),
                             HasSubstr("did you mean \"user.npy\"?"))));
}

TEST_F(CheckJobAndDataTest, TheReportIsTextAndJson) {
  const JobReport report = Check({{"positive: \"yes\"", "positive: \"Yes\""}});
  const std::string text = ToText(report);
  EXPECT_THAT(text, HasSubstr("train: 4 examples\n"));
  EXPECT_THAT(text, HasSubstr("  column age (input numbers): 25 % missing, "
                              "mean 30, stddev 8.16497, from 20 to 40\n"));
  EXPECT_THAT(text, HasSubstr("\nend: step 6, after 3 epochs of 4 examples"));
  EXPECT_THAT(text, HasSubstr("\nmemory of ps/0: "));
  EXPECT_THAT(text, HasSubstr("\nno faults, 2 warnings\n"));
  const nlohmann::json json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["data_sets"][0]["examples"], 4);
  EXPECT_EQ(json["data_sets"][0]["columns"][1]["missing"], 1);
  EXPECT_EQ(json["end_step"], 6);
  EXPECT_EQ(json["warnings"].size(), 2);
}

}  // namespace
}  // namespace parasol
