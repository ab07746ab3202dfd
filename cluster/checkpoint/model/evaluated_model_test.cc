#include "cluster/checkpoint/model/evaluated_model.h"

#include <filesystem>
#include <memory>
#include <string>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/tiny_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

bool Never() { return false; }

class EvaluatedModelTest : public TinyJobFixture {
 protected:
  absl::StatusOr<std::unique_ptr<EvaluatedModel>> Create() {
    return EvaluatedModel::Create(
        TinyJob(), {.data_dir = data_dir(), .compute = {.device = "cpu"}});
  }
  std::string PathOf(int64_t step) {
    return CheckpointStore(checkpoint_dir()).PathOf(step);
  }
};

TEST_F(EvaluatedModelTest, TheResultIsThatOfTheWholeDataSet) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  ASSERT_OK_AND_ASSIGN(const auto model, Create());
  ASSERT_OK(model->Load(PathOf(10)));

  ASSERT_OK_AND_ASSIGN(const EvaluatedModel::Result result, model->Run(Never));
  EXPECT_EQ(result.examples, 3);
  EXPECT_THAT(result.metrics,
              ElementsAre(Pair("accuracy", DoubleEq(kIdentityAccuracy))));
  // Single precision.
  EXPECT_NEAR(result.loss, kIdentityLoss, 1e-6);
}

TEST_F(EvaluatedModelTest, EachLoadReplacesTheValues) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(20, {0, 1, 1, 0}, /*final=*/true));
  ASSERT_OK_AND_ASSIGN(const auto model, Create());
  ASSERT_OK_AND_ASSIGN(const auto first, model->Load(PathOf(10)));
  ASSERT_OK_AND_ASSIGN(const auto second, model->Load(PathOf(20)));

  EXPECT_EQ(first.global_step(), 10);
  EXPECT_TRUE(second.final());
  ASSERT_OK_AND_ASSIGN(const EvaluatedModel::Result result, model->Run(Never));
  EXPECT_THAT(result.metrics, ElementsAre(Pair("accuracy", DoubleEq(1.0 / 3))));
}

TEST_F(EvaluatedModelTest, AMetricThatDoesNotFitTheLossIsRefusedAtOnce) {
  job::Job job = TinyJob();
  job.mutable_model()->add_metric()->mutable_log_loss();

  EXPECT_THAT(
      EvaluatedModel::Create(
          job, {.data_dir = data_dir(), .compute = {.device = "cpu"}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("log_loss")));
}

TEST_F(EvaluatedModelTest, AMissingDataFileIsNotFoundAtOnce) {
  std::filesystem::remove(data_dir() + "/labels");

  EXPECT_THAT(Create().status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("labels")));
}

TEST_F(EvaluatedModelTest, ACorruptDataFileIsDataLossAtOnce) {
  ASSERT_OK(WriteFileDurably(data_dir() + "/images", "no IDX file"));

  EXPECT_THAT(Create().status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("images")));
}

TEST_F(EvaluatedModelTest, ACheckpointThatIsNotThereIsNotFound) {
  ASSERT_OK_AND_ASSIGN(const auto model, Create());

  EXPECT_THAT(model->Load(PathOf(10)).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(EvaluatedModelTest, ACheckpointOfAnotherModelIsDataLoss) {
  ASSERT_OK(WriteCheckpoint(10, {1, 2}, /*final=*/false));
  ASSERT_OK_AND_ASSIGN(const auto model, Create());

  EXPECT_THAT(
      model->Load(PathOf(10)).status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("logits/kernel")));
}

TEST_F(EvaluatedModelTest, ARunThatIsCancelledEndsBeforeTheNextBatch) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  ASSERT_OK_AND_ASSIGN(const auto model, Create());
  ASSERT_OK(model->Load(PathOf(10)));
  int asked = 0;

  EXPECT_THAT(model->Run([&asked] { return ++asked == 2; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace parasol
