// Predictions and evaluations of checkpoints, with the binaries as users start
// them.

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Files of rows that come and go in a directory.
class RowFilesWatch {
 public:
  explicit RowFilesWatch(const std::string& directory)
      : descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(descriptor_, directory.c_str(),
                                IN_CREATE | IN_DELETE),
              0);
  }
  ~RowFilesWatch() { close(descriptor_); }

  // Returns how many were made and how many removed since the last call.
  std::pair<int, int> Count() {
    int made = 0;
    int removed = 0;
    alignas(inotify_event) char buffer[4096];
    ssize_t size;
    while ((size = read(descriptor_, buffer, sizeof(buffer))) > 0) {
      for (ssize_t at = 0; at < size;) {
        const auto& event = *reinterpret_cast<inotify_event*>(buffer + at);
        at += sizeof(event) + event.len;
        if (!absl::StartsWith(event.name, "parasol-rows-")) continue;
        ++(event.mask & IN_CREATE ? made : removed);
      }
    }
    return {made, removed};
  }

 private:
  const int descriptor_;
};

class ModelUseTest : public TrainedJobFixture {
 protected:
  CompletedProcess Predict(const std::string& output,
                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "predict", Path("ckpt"), "--data_dir=" + Path(""), "--device=cpu",
        "--output=" + Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  // The text of the file that a prediction writes.
  std::string Predicted(const std::string& output,
                        const std::vector<std::string>& more = {}) {
    const CompletedProcess run = Predict(output, more);
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    std::ifstream file(Path(output));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  CompletedProcess Evaluate(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "evaluate", Path("ckpt"), "--data_dir=" + Path(""), "--device=cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }
};

TEST_F(ModelUseTest, EvaluationIsThatOfTheJobItself) {
  Train("ckpt", 20);
  const CompletedProcess run = Evaluate({"--json"});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const auto evaluated = nlohmann::json::parse(run.standard_output);
  std::ifstream log(Path("ckpt/evaluations.jsonl"));
  const auto trained = nlohmann::json::parse(log);
  EXPECT_EQ(evaluated["global_step"], 20);
  EXPECT_EQ(evaluated["examples"], kExamples);
  EXPECT_EQ(evaluated["loss"], trained["loss"]);
}

TEST_F(ModelUseTest, PredictionsAreInTheOrderOfTheDataAndGiveTheLoss) {
  Train("ckpt", 20);
  const CompletedProcess run = Predict("p.csv");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  std::ifstream csv(Path("p.csv"));
  std::string header;
  std::getline(csv, header);
  EXPECT_EQ(header, "prediction");
  double squares = 0;
  int examples = 0;
  for (double rating; csv >> rating; ++examples) {
    squares += std::pow(rating - RatingOf(examples), 2);
  }
  EXPECT_EQ(examples, kExamples);
  const auto evaluated =
      nlohmann::json::parse(Evaluate({"--json"}).standard_output);
  EXPECT_NEAR(squares / kExamples, evaluated["loss"].get<double>(), 1e-4);
}

TEST_F(ModelUseTest, PartsOneAfterTheOtherAreTheWhole) {
  Train("ckpt", 2);
  const std::string whole = Predicted("p.csv");
  std::string joined;
  for (int part = 0; part < 3; ++part) {
    const std::string lines =
        Predicted("part.csv", {absl::StrCat("--shard=", part, "/3")});
    EXPECT_GE(std::count(lines.begin(), lines.end(), '\n'), 60);
    joined += lines;
  }
  EXPECT_EQ(joined, whole);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 1 + kExamples);
  // More parts than batches of 7: some have nothing, and the first one the
  // names.
  EXPECT_EQ(Predicted("none.csv", {"--shard=0/1000"}), "prediction\n");
  EXPECT_EQ(Predicted("none.csv", {"--shard=1/1000"}), "");
  for (const char* shard : {"3/3", "-1/3", "1", "1/0", "a/b"}) {
    const CompletedProcess run =
        Predict("p.csv", {absl::StrCat("--shard=", shard)});
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error, HasSubstr(absl::StrCat("--shard=", shard)));
  }
}

TEST_F(ModelUseTest, ALayersOutputsAreWrittenInsteadOfTheModels) {
  Train("ckpt", 20);
  const std::string raw = Predicted("raw.csv", {"--raw"});
  EXPECT_EQ(raw.substr(0, raw.find('\n')), "outputs");
  EXPECT_EQ(Predicted("rating.csv", {"--layer=rating"}),
            "rating" + raw.substr(raw.find('\n')));
  std::ofstream(Path("one.dat")) << "1::2::0::0\n";
  const std::string hidden = Predicted(
      "hidden.jsonl", {"--layer=hidden", "--set=eval.ratings.file[0]=one.dat"});
  const auto values = nlohmann::json::parse(hidden)["hidden"];
  ASSERT_EQ(values.size(), 5);
  double sum = 0;
  for (const auto& value : values) {
    EXPECT_GE(value, 0);  // of a ReLU
    sum += value.get<double>();
  }
  EXPECT_GT(sum, 0);
  const CompletedProcess run = Predict("p.csv", {"--layer=hiden"});
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("did you mean \"hidden\"?"));
}

TEST_F(ModelUseTest, DataWithoutLabelsGiveTheSamePredictions) {
  Train("ckpt", 20);
  std::ofstream(Path("with.dat")) << "1::2::3::0\n4::0::1::0\n";
  std::ofstream(Path("without.dat")) << "1::2::0\n4::0::0\n";
  const std::string with =
      Predicted("a.csv", {"--set=eval.ratings.file[0]=with.dat"});
  EXPECT_EQ(Predicted("b.csv", {"--set=eval.ratings.file[0]=without.dat"}),
            with);
  EXPECT_EQ(std::count(with.begin(), with.end(), '\n'), 3);
}

TEST_F(ModelUseTest, OtherDataAreChosenWithSet) {
  Train("ckpt", 2);
  std::ofstream(Path("few.dat")) << "1::2::3::0\n4::0::1::0\n";
  const CompletedProcess run = Evaluate({"--set=eval.ratings.file[0]=few.dat"});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_THAT(run.standard_output,
              AllOf(HasSubstr("step 2: "), HasSubstr("2 examples")));
}

TEST_F(ModelUseTest, FaultsAreNamedAndLeaveNoFile) {
  Train("ckpt", 2);
  for (const auto& [output, data, words] :
       {std::tuple("p.txt", Path(""), "must end with"),
        std::tuple("p.csv", Path("none"), "none")}) {
    const CompletedProcess run =
        RunTool({"predict", Path("ckpt"), "--data_dir=" + data, "--device=cpu",
                 "--output=" + Path(output)});
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error, HasSubstr(words));
    EXPECT_FALSE(std::ifstream(Path(output)).good());
  }
}

TEST_F(ModelUseTest, TablesInFilesGiveTheSameToTheBit) {
  Train("ckpt", 20);
  fs::create_directory(Path("tables"));
  RowFilesWatch watch(Path("tables"));
  const std::string directory = "--table_dir=" + Path("tables");
  const std::string in_memory = Predicted("a.npy");
  const std::string loss =
      nlohmann::json::parse(Evaluate({"--json"}).standard_output)["loss"]
          .dump();
  // One file tries the directory, and one has the table.
  for (const auto& [limit, files] : {std::pair("0", 2), {"1000000", 1}}) {
    SCOPED_TRACE(limit);
    const std::string memory = absl::StrCat("--table_memory=", limit);
    EXPECT_EQ(Predicted("b.npy", {memory, directory}), in_memory);
    EXPECT_EQ(watch.Count(), std::pair(files, files));
    const CompletedProcess run = Evaluate({"--json", memory, directory});
    ASSERT_EQ(run.end.code(), 0) << run.standard_error;
    EXPECT_EQ(nlohmann::json::parse(run.standard_output)["loss"].dump(), loss);
    EXPECT_EQ(watch.Count(), std::pair(files, files));
  }
  EXPECT_TRUE(fs::is_empty(Path("tables")));
}

TEST_F(ModelUseTest, AnErrorLeavesNoFileOfATable) {
  Train("ckpt", 2);
  fs::create_directory(Path("tables"));
  RowFilesWatch watch(Path("tables"));
  std::ofstream(Path("bad.dat")) << "1::2::3::0\n4::9::1::0\nbad\n";
  const std::string memory = "--table_memory=0";
  const std::string directory = "--table_dir=" + Path("tables");
  // The table is loaded when the output can't be made, and when a line of the
  // data can't be read.
  for (const CompletedProcess& run :
       {Predict("bad.dat/p.csv", {memory, directory}),
        Predict("p.csv",
                {memory, directory, "--set=eval.ratings.file[0]=bad.dat"}),
        Evaluate({memory, directory, "--set=eval.ratings.file[0]=bad.dat"})}) {
    EXPECT_NE(run.end.code(), 0);
  }
  EXPECT_EQ(watch.Count(), std::pair(6, 6));
  EXPECT_TRUE(fs::is_empty(Path("tables")));
  for (const std::string flag : {"--table_memory=-1", "--table_dir=/nowhere"}) {
    EXPECT_THAT(Evaluate({flag}).standard_error, HasSubstr(flag));
    const CompletedProcess run = Predict("p.csv", {flag});
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error, HasSubstr(flag));
  }
}

TEST_F(ModelUseTest, NamedOutputsAreColumnsWithNames) {
  WriteJobOfNamedOutputs();
  Train("ckpt", 20);
  const std::string csv = Predicted("p.csv", {"--all_probabilities"});
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line,
            "rating_prediction,kind_class,kind_probability,"
            "kind_probability_a,kind_probability_b,kind_probability_c,"
            "likes_it_probability,likes_it_class,likes_it_probability_not yes,"
            "likes_it_probability_yes");
  double squares = 0;
  int examples = 0;
  for (int i = 0; std::getline(lines, line); ++i) {
    const std::vector<std::string> values = absl::StrSplit(line, ',');
    ASSERT_EQ(values.size(), 10u);
    const int kind = values[1][0] - 'a';
    EXPECT_EQ(values[3 + kind], values[2]);
    EXPECT_NEAR(
        std::stod(values[3]) + std::stod(values[4]) + std::stod(values[5]), 1,
        1e-5);
    EXPECT_EQ(values[9], values[6]);
    EXPECT_EQ(values[7], std::stod(values[6]) > .5 ? "yes" : "not yes");
    if (i % 3 == 0) continue;
    squares += std::pow(std::stod(values[0]) - RatingOf(i), 2);
    ++examples;
  }
  // An evaluation has the loss of each, and of a rating that is there.
  const auto evaluated =
      nlohmann::json::parse(Evaluate({"--json"}).standard_output);
  EXPECT_NEAR(squares / examples, evaluated["rating/loss"].get<double>(), 1e-4);
  EXPECT_TRUE(evaluated["kind/accuracy"].is_number());
  EXPECT_TRUE(evaluated["likes_it/auc"].is_number());
  EXPECT_NEAR(evaluated["loss"].get<double>(),
              evaluated["rating/loss"].get<double>() +
                  2 * evaluated["kind/loss"].get<double>() +
                  evaluated["likes_it/loss"].get<double>(),
              1e-5);

  std::istringstream objects(Predicted("p.jsonl", {"--raw"}));
  std::getline(objects, line);
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["kind"].size(), 3u);
  EXPECT_EQ(first["likes_it"].size(), 1u);
  // Only the first part says the names.
  EXPECT_EQ(Predicted("a.csv", {"--shard=0/2", "--all_probabilities"}) +
                Predicted("b.csv", {"--shard=1/2", "--all_probabilities"}),
            csv);
  EXPECT_EQ(Predicted("kind.csv", {"--layer=kind"}).substr(0, 21),
            "kind_0,kind_1,kind_2\n");
}

// Columns go along, whatever is in them, and say which class was there.
TEST_F(ModelUseTest, ColumnsAreKeptBesideClassesAndProbabilities) {
  WriteJobOfNamedOutputs();
  Train("ckpt", 5);
  std::ofstream(Path("new.csv"))
      << "\"who, and where\",user,item,kind\n\"Zoë \"\"Z\"\", Ulm\",3,4,a\n"
         " 007 ,1,2,\n";
  const std::string data = "--set=eval.csv.file[0]=new.csv";
  const std::string csv =
      Predicted("p.csv", {data, "--keep=\"who, and where\",kind"});
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], testing::StartsWith(
                            "\"who, and where\",kind,rating_prediction,"));
  EXPECT_THAT(lines[1], testing::StartsWith("\"Zoë \"\"Z\"\", Ulm\",a,"));
  EXPECT_THAT(lines[2], testing::StartsWith("007,,"));
  std::istringstream objects(
      Predicted("p.jsonl", {data, "--keep=user", "--keep=kind"}));
  std::string line;
  std::getline(objects, line);
  std::getline(objects, line);
  const auto second = nlohmann::json::parse(line);
  EXPECT_EQ(second["user"], "1");
  EXPECT_TRUE(second["kind"].is_null());
  EXPECT_TRUE(second["rating_prediction"].is_number());

  for (const auto& [output, flag, words] :
       {std::tuple("p.csv", "--keep=usr", "did you mean \"user\"?"),
        std::tuple("p.csv", "--keep=user,user", "\"user\" twice"),
        std::tuple("p.csv", "--keep=user,", "no list of columns"),
        std::tuple("p.npy", "--keep=user", ".csv, .jsonl or .tfrecord"),
        std::tuple("p.csv", "--layer=kind", "leave one of the two out")}) {
    const CompletedProcess run = Predict(
        output, {data, flag,
                 absl::StartsWith(flag, "--layer") ? "--all_probabilities"
                                                   : "--noraw"});
    EXPECT_EQ(run.end.code(), 2) << flag;
    EXPECT_THAT(run.standard_error, HasSubstr(words));
  }
}

// The file lacks the labels that the job lists, and a part of the model does
// not have the outputs that say which these are.
TEST_F(ModelUseTest, ALayerOfUnlabelledDataIsWritten) {
  WriteJobOfNamedOutputs();
  std::ifstream file(Path("job.textproto"));
  std::string job(std::istreambuf_iterator<char>(file), {});
  const std::string eval = "eval { csv { file: \"ratings.csv\"";
  ASSERT_NE(job.find(eval), std::string::npos);
  job.replace(job.find(eval), eval.size(),
              "eval { csv { file: \"listed.csv\" column: [\"user\", \"item\", "
              "\"rating\", \"kind\", \"likes\"]");
  std::ofstream(Path("job.textproto")) << job;
  std::ofstream(Path("listed.csv")) << "3,4,7,a,yes\n1,2,5,b,no\n";
  Train("ckpt", 5);
  const std::string labelled = Predicted("a.csv", {"--layer=experts"});
  EXPECT_EQ(std::count(labelled.begin(), labelled.end(), '\n'), 3);
  std::ofstream(Path("listed.csv")) << "3,4\n1,2\n";
  EXPECT_EQ(Predicted("b.csv", {"--layer=experts"}), labelled);
  EXPECT_FALSE(Predicted("c.csv").empty());
  std::ofstream(Path("listed.csv")) << "3\n1\n";
  const CompletedProcess run = Predict("d.csv", {"--layer=experts"});
  EXPECT_NE(run.end.code(), 0);
  EXPECT_THAT(run.standard_error, HasSubstr("1 values, not 5"));
}

// Checkpoints have names: later data may have columns that a pattern would
// match, too, and another order.
TEST_F(ModelUseTest, PatternsOfColumnsAreResolvedOnce) {
  WriteJobOfPatterns();
  const CompletedProcess check =
      RunTool({"check", Path("job.textproto"), "--data_dir=" + Path(""),
               "--set=end.steps=5"});
  ASSERT_EQ(check.end.code(), 0) << check.standard_error;
  EXPECT_THAT(check.standard_output,
              AllOf(HasSubstr("pattern x*, model.input[0].dense.column[0]: 2 "
                              "columns: x2, x1\n"),
                    HasSubstr("pattern c?, model.input[1].ids.column[0]: 2 "
                              "columns: c1, c2\n"),
                    HasSubstr("column xy (label)")));
  Train("ckpt", 20);
  std::ofstream(Path("new.csv"))
      << "c3,x1,c2,c1,x2,x3\nq,0,b0,a0,0,9\nr,1,b1,a1,1,9\n";
  std::ofstream(Path("old.csv"))
      << "x2,c1,xy,x1,other,c2\n0,a0,0,0,0,b0\n1,a1,0,1,0,b1\n";
  const std::string old =
      Predicted("a.csv", {"--set=eval.csv.file[0]=old.csv"});
  EXPECT_EQ(std::count(old.begin(), old.end(), '\n'), 3);
  EXPECT_EQ(Predicted("b.csv", {"--set=eval.csv.file[0]=new.csv"}), old);
  // A restart reads the job file again.
  Train("ckpt", 25);
}

TEST_F(ModelUseTest, CheckSaysTheLabelsOfEachOutput) {
  WriteJobOfNamedOutputs();
  const CompletedProcess run =
      RunTool({"check", Path("job.textproto"), "--data_dir=" + Path(""),
               "--set=end.steps=5"});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_THAT(run.standard_output,
              AllOf(HasSubstr("labels of rating: mean "),
                    HasSubstr("33.5 % of the examples do not count"),
                    HasSubstr("labels of kind: 0 40 %, 1 40 %, 2 20 %"),
                    HasSubstr("labels of likes_it: 0 50 %, 1 50 %"),
                    HasSubstr("column kind (label of kind)"),
                    HasSubstr("rating -  kind 0  likes_it 1")));
  const CompletedProcess wrong =
      RunTool({"check", Path("job.textproto"), "--data_dir=" + Path(""),
               "--set=end.steps=5", "--set=model.output[1].label.column=kinds",
               "--set=model.output[2].label.positive[0]=yess"});
  EXPECT_EQ(wrong.end.code(), 2);
  EXPECT_THAT(wrong.standard_error + wrong.standard_output,
              AllOf(HasSubstr("model.output[1].label.column"),
                    HasSubstr("did you mean \"kind\"?"),
                    HasSubstr("model.output[2].label.positive[0]: \"yess\" is "
                              "never seen in column \"likes\"")));
}

}  // namespace
}  // namespace parasol
