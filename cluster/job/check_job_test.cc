#include "cluster/job/check_job.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kGood[] = R"(name: "ads"
model {
  input { name: "numbers" dense { column { name: "age" } column { name: "x" } } }
  input { name: "user" ids { column { name: "user" hash {} } } }
  sparse_table { name: "users" width: 4 }
  layer { name: "bag" input: "user" embedding_bag { table: "users" } }
  layer { name: "all" input: "numbers" input: "bag" concatenate {} }
  layer { name: "hidden" dense { units: 8 activation: RELU } }
  layer { name: "drop" dropout { rate: 0.5 } }
  layer { name: "out" dense { units: 1 } }
  loss { binary_crossentropy { label_smoothing: 0.1 } }
  metric { auc {} }
}
train {
  csv { file: "train.csv" label { column: "y" } }
  batch_size: 64
  shuffle_buffer: 1000
}
optimizer { adam { learning_rate: 0.01 } }
end { epochs: 2 }
checkpoint { every_steps: 100 max_to_keep: 3 }
)";

class CheckJobTest : public ::testing::Test {
 protected:
  // The lines of all faults of the job, without its path.
  std::vector<std::string> FaultsOf(
      const std::vector<std::pair<std::string, std::string>>& changes,
      const std::vector<std::string>& overrides = {}) {
    std::string text = kGood;
    for (const auto& [from, to] : changes) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), from.size(), to);
    }
    const std::string path = testing::TempDir() + "/check_job.textproto";
    std::ofstream(path) << text;
    const absl::StatusOr<CheckedJob> checked =
        CheckedJob::Read(path, overrides);
    EXPECT_OK(checked);
    std::vector<std::string> lines;
    for (const JobFault& fault : checked->faults()) {
      EXPECT_THAT(fault.Line(), testing::Not(HasSubstr("\n")));
      lines.push_back(fault.Line().substr(path.size() + 1));
    }
    EXPECT_TRUE(checked->graph().has_value() || !lines.empty());
    return lines;
  }
};

TEST_F(CheckJobTest, AGoodJobHasNoFault) {
  EXPECT_THAT(FaultsOf({}), IsEmpty());
}

TEST_F(CheckJobTest, TheExamplesOfTheDocumentsHaveNoFault) {
  const absl::StatusOr<CheckedJob> checked =
      CheckedJob::Read("docs/examples/mnist_mlp.textproto", {});
  ASSERT_OK(checked);
  EXPECT_THAT(checked->faults(), IsEmpty());
}

// No machine is asked whether it has the devices: workers have theirs.
TEST_F(CheckJobTest, TheListsOfWorkersDevicesAreRead) {
  const auto with = [this](const std::string& devices) {
    return FaultsOf(
        {{"end { epochs: 2 }",
          absl::StrCat("end { epochs: 2 }\nstrategy {\n",
                       "  multi_worker_mirrored { ", devices, " }\n}")}});
  };
  EXPECT_THAT(with("device: '/gpu:0' device: 'cuda:900' device: 'cpu:1'"),
              IsEmpty());
  EXPECT_THAT(
      with("device: 'cpu:0' device: 'tpu:1'"),
      ElementsAre(AllOf(HasSubstr("22:43: strategy.multi_worker_mirrored"),
                        HasSubstr("device[1]: \"tpu:1\": there is no such"))));
  EXPECT_THAT(with("device: 'GPU:0' device: 'cuda:0'"),
              ElementsAre(HasSubstr("device[1]: cuda:0 appears twice")));
}

// The faults of a job that someone has written in a hurry, all at once.
TEST_F(CheckJobTest, TenFaultsAreTenLinesInTheOrderOfTheFile) {
  EXPECT_THAT(
      FaultsOf({{"width: 4", "width: 0"},
                {"input: \"user\"", "input: \"usr\""},
                {"\"users\" } }", "\"user\" } }"},
                {"units: 8", "unit: 8"},
                {"RELU", "RELUU"},
                {"rate: 0.5", "rate: 1.5"},
                {"auc {}", "mrr { k: 0 }"},
                {"batch_size: 64", "batch_size: 0"},
                {"learning_rate: 0.01", "learning_rate: -1"},
                {"every_steps: 100 max_to_keep: 3",
                 "every_steps: 0 max_to_keep: -3"}}),
      ElementsAre(
          HasSubstr("5:32: model.sparse_table[0].width: 0 is not in 1 to"),
          HasSubstr("6:52: model.layer[0].embedding_bag.table: \"user\" is the "
                    "name of no model.sparse_table; did you mean \"users\"?"),
          HasSubstr("6:3: model.layer[0] \"bag\": input \"usr\" is neither a "
                    "layer before it nor an input of the model; did you mean "
                    "\"user\"?"),
          HasSubstr("8:34: \"unit\" is not a field of Dense; did you mean "
                    "\"units\"?"),
          HasSubstr("did you mean \"RELU\"?"),
          HasSubstr("9:34: model.layer[3].dropout.rate: 1.5"),
          HasSubstr("12:12: \"mrr\" is not a field of Metric"),
          HasSubstr("16:3: train.batch_size: 0 is not in 1 to"),
          HasSubstr("19:1: optimizer: adam.learning_rate is -1"),
          HasSubstr("21:14: checkpoint.every_steps: 0"),
          HasSubstr("21:29: checkpoint.max_to_keep: -3")));
}

TEST_F(CheckJobTest, AFaultHasNoConsequences) {
  // A layer whose shape is unknown, and those that read it.
  EXPECT_THAT(FaultsOf({{"input: \"numbers\"", "input: \"number\""}}),
              ElementsAre(HasSubstr("did you mean \"numbers\"?")));
  // A name that is not near any: nothing is said of values that nobody reads.
  EXPECT_THAT(FaultsOf({{"input: \"numbers\"", "input: \"colours\""}}),
              ElementsAre(HasSubstr("\"colours\" is neither")));
  EXPECT_THAT(FaultsOf({{"dense { units: 8 activation: RELU }", ""}}),
              ElementsAre(HasSubstr("model.layer[2]: no kind is chosen")));
  EXPECT_THAT(FaultsOf({{"train {", "trian {"}}),
              ElementsAre(HasSubstr("did you mean \"train\"?")));
  EXPECT_THAT(FaultsOf({{"epochs: 2", "epoch: two"}}),
              ElementsAre(HasSubstr("20:7: \"epoch\" is not a field")));
  EXPECT_THAT(FaultsOf({{"label_smoothing: 0.1", "label_smoothing: x"}}),
              SizeIs(1));
  EXPECT_THAT(FaultsOf({{"optimizer {", "optimiser {"}}), SizeIs(1));
}

TEST_F(CheckJobTest, BehindAnUnknownShapeTheLossIsCheckedAllTheSame) {
  EXPECT_THAT(
      FaultsOf({{"input: \"numbers\"", "input: \"number\""},
                {"auc {}", "root_mean_squared_error {} } metric { auc {}"},
                {"name: \"out\" dense { units: 1 }",
                 "name: \"out\" dense { units: 3 }"},
                {"loss { binary_crossentropy { label_smoothing: 0.1 } }",
                 "loss { sparse_categorical_crossentropy {} }"}}),
      ElementsAre(HasSubstr("\"number\" is neither"),
                  HasSubstr("model.metric")));
}

TEST_F(CheckJobTest, OverridesAreAppliedAndTheirFaultsAreNamed) {
  EXPECT_THAT(FaultsOf({{"epochs: 2", "epochs: 0"}}, {"end.epochs=1"}),
              IsEmpty());
  EXPECT_THAT(
      FaultsOf({}, {"end.epoch=1", "train.batch_size=0", "name=a b"}),
      ElementsAre(HasSubstr("1:1: name: \"a b\""),
                  HasSubstr("16:3: train.batch_size: 0"),
                  HasSubstr(" --set=end.epoch=1: \"epoch\" is not a field")));
}

TEST_F(CheckJobTest, ATextThatIsNoJobAndAFileThatIsNotThereAreOneFault) {
  EXPECT_THAT(FaultsOf({{"model {", "model "}}), SizeIs(1));
  EXPECT_THAT(CheckedJob::Read("no/such/job", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/job")));
}

}  // namespace
}  // namespace parasol
