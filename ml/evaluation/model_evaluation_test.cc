#include "ml/evaluation/model_evaluation.h"

#include <set>
#include <vector>

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
            *model_, [this](auto rows) { return ReadIds(rows); }, Never));
    EXPECT_EQ(result.examples, 5);
    EXPECT_DOUBLE_EQ(result.loss, (2 * 2 + 4 * 4) / 5.);
    EXPECT_THAT(result.metrics, ElementsAre(Pair("mean_absolute_error",
                                                 DoubleEq((2 + 4) / 5.))));
  }
}

TEST_F(ModelEvaluationTest, ExamplesComeInTheirOrder) {
  ASSERT_OK(evaluation_->Run(
      *model_, [this](auto rows) { return ReadIds(rows); }, Never));
  EXPECT_THAT(read_,
              ElementsAre(std::set<uint64_t>{1, 2}, std::set<uint64_t>{3, 4},
                          std::set<uint64_t>{5}));
}

TEST_F(ModelEvaluationTest, AnErrorOfTheRowsEndsIt) {
  EXPECT_THAT(
      evaluation_->Run(
          *model_, [](auto) { return absl::UnavailableError("no rows"); },
          Never),
      StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ModelEvaluationTest, ItIsCancelledBeforeTheNextBatch) {
  int asked = 0;
  EXPECT_THAT(evaluation_->Run(
                  *model_, [this](auto rows) { return ReadIds(rows); },
                  [&asked] { return ++asked == 2; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(read_, ElementsAre(std::set<uint64_t>{1, 2}));
}

}  // namespace
}  // namespace parasol
