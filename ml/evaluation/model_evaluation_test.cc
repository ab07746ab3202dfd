#include "ml/evaluation/model_evaluation.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/input/testing/input_files.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pair;

bool Never() { return false; }

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// The model's output for a user is the user's row, of one value.
job::Model RowModel() {
  return Parse<job::Model>(R"pb(
    input {
      name: "user"
      ids {
        column {
          name: "user"
          identity { num_ids: 10 }
        }
      }
    }
    sparse_table { name: "means" width: 1 }
    layer {
      name: "mean"
      input: "user"
      embedding_bag { table: "means" }
    }
    loss { mean_squared_error {} }
    metric { mean_absolute_error {} }
  )pb");
}

class ModelEvaluationTest : public testing::Test {
 protected:
  ModelEvaluationTest() {
    WriteTestFile("eval.csv", "user,y\n1,1\n2,0\n3,3\n4,0\n5,5\n");
    const Graph graph = *ResolveGraph(RowModel());
    const auto data = Parse<job::Dataset>(R"pb(
      csv {
        file: "eval.csv"
        label { column: "y" }
      }
      batch_size: 2
      shuffle_buffer: 100
    )pb");
    evaluation_ =
        *ModelEvaluation::Open(RowModel(), graph, data, testing::TempDir());
    device_ = *Device::Open("cpu");
    model_ = *Model::Create(graph, *device_);
  }

  std::unique_ptr<ModelEvaluation> evaluation_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::vector<std::set<uint64_t>> read_;  // each batch's ids
  // Gives each user's id as the value of its row.
  absl::Status ReadIds(absl::Span<const StagedBatch::Rows> tables) {
    for (const StagedBatch::Rows& rows : tables) {
      read_.emplace_back(rows.ids.begin(), rows.ids.end());
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        rows.values[i] = rows.ids[i];
      }
    }
    return absl::OkStatus();
  }
};

TEST_F(ModelEvaluationTest, TheResultIsThatOfTheWholeSetEachTime) {
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(
        const ModelEvaluation::Result result,
        evaluation_->Run(
            {model_.get()}, [this](auto rows) { return ReadIds(rows); },
            Never));
    EXPECT_EQ(result.examples, 5);
    EXPECT_DOUBLE_EQ(result.loss, (2 * 2 + 4 * 4) / 5.);
    EXPECT_THAT(result.metrics, ElementsAre(Pair("mean_absolute_error",
                                                 DoubleEq((2 + 4) / 5.))));
  }
}

TEST_F(ModelEvaluationTest, ExamplesComeInTheirOrder) {
  ASSERT_OK(evaluation_->Run(
      {model_.get()}, [this](auto rows) { return ReadIds(rows); }, Never));
  EXPECT_THAT(read_,
              ElementsAre(std::set<uint64_t>{1, 2}, std::set<uint64_t>{3, 4},
                          std::set<uint64_t>{5}));
}

TEST_F(ModelEvaluationTest, AnErrorOfTheRowsEndsIt) {
  EXPECT_THAT(
      evaluation_->Run(
          {model_.get()},
          [](auto) { return absl::UnavailableError("no rows"); }, Never),
      StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ModelEvaluationTest, ItIsCancelledBeforeTheNextBatch) {
  int asked = 0;
  EXPECT_THAT(evaluation_->Run(
                  {model_.get()}, [this](auto rows) { return ReadIds(rows); },
                  [&asked] { return ++asked == 2; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(read_, ElementsAre(std::set<uint64_t>{1, 2}));
}

// Batches are added in their order however many models take them, so that sums
// of rounded numbers have the same bits.
TEST_F(ModelEvaluationTest, SeveralModelsGiveTheBitsOfOne) {
  std::string lines = "user,y\n";
  for (int i = 0; i < 500; ++i) {
    absl::StrAppend(&lines, i * i % 10, ",", .1 * (i % 37), "\n");
  }
  WriteTestFile("many.csv", lines);
  const Graph graph = *ResolveGraph(RowModel());
  ASSERT_OK_AND_ASSIGN(
      const auto evaluation,
      ModelEvaluation::Open(RowModel(), graph, Parse<job::Dataset>(R"pb(
                              csv {
                                file: "many.csv"
                                label { column: "y" }
                              }
                              batch_size: 7
                            )pb"),
                            testing::TempDir()));
  const auto run = [&](size_t number, std::vector<float>& outputs) {
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Model>> models;
    std::vector<Model*> all;
    for (size_t i = 0; i < number; ++i) {
      devices.push_back(*Device::Open("cpu"));
      models.push_back(*Model::Create(graph, *devices.back()));
      all.push_back(models.back().get());
    }
    const auto result = evaluation->Run(
        all, [this](auto rows) { return ReadIds(rows); }, Never,
        [&outputs](absl::Span<const float> batch) {
          outputs.insert(outputs.end(), batch.begin(), batch.end());
          return absl::OkStatus();
        });
    EXPECT_OK(result);
    return *result;
  };
  std::vector<float> outputs;
  const ModelEvaluation::Result one = run(1, outputs);
  EXPECT_EQ(one.examples, 500);
  for (const size_t number : {2, 3, 8}) {
    std::vector<float> others;
    const ModelEvaluation::Result several = run(number, others);
    EXPECT_EQ(several.examples, one.examples);
    EXPECT_EQ(several.loss, one.loss);
    EXPECT_EQ(several.metrics, one.metrics);
    EXPECT_EQ(others, outputs);
  }
}

TEST_F(ModelEvaluationTest, AnErrorOfOneOfSeveralModelsEndsAll) {
  const std::unique_ptr<Model> second =
      *Model::Create(*ResolveGraph(RowModel()), *device_);
  int batches = 0;
  EXPECT_THAT(evaluation_->Run(
                  {model_.get(), second.get()},
                  [&batches](auto) {
                    return ++batches == 2 ? absl::UnavailableError("no rows")
                                          : absl::OkStatus();
                  },
                  Never),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
