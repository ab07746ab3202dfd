#include "cluster/checkpoint/best_checkpoint.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

class BestCheckpointTest : public testing::Test {
 protected:
  BestCheckpointTest()
      : directory_(
            testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name()),
        store_(*CheckpointStore::OpenForWriting(directory_)) {
    job_.mutable_checkpoint()->mutable_keep_best()->set_metric("auc");
    job_.mutable_checkpoint()->mutable_keep_best()->set_mode(job::MAX);
  }

  void Commit(int64_t step) {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    ASSERT_OK(store_.Commit(*store_.Begin(step), manifest));
  }
  static Evaluation At(int64_t step, double auc) {
    Evaluation evaluation;
    evaluation.global_step = step;
    evaluation.metrics = {{"auc", auc}};
    return evaluation;
  }
  absl::StatusOr<std::string> Best() {
    return ReadFile(directory_ + "/BEST", 1000);
  }

  const std::string directory_;
  CheckpointStore store_;
  job::Job job_;
};

TEST_F(BestCheckpointTest, NamesTheBestOfThoseThatAreThere) {
  for (const int64_t step : {10, 20, 30}) Commit(step);
  const std::vector<Evaluation> evaluations = {At(5, .9), At(10, .5),
                                               At(20, .75), At(30, .6)};
  ASSERT_OK(UpdateBest(store_, job_, evaluations));
  EXPECT_THAT(Best(),
              IsOkAndHolds("{\"checkpoint\":\"ckpt-000000000020\",\"global_"
                           "step\":20,\"metric\":\"auc\",\"value\":0.75}\n"));
  std::filesystem::remove_all(store_.PathOf(20));
  ASSERT_OK(UpdateBest(store_, job_, evaluations));
  EXPECT_THAT(Best(),
              IsOkAndHolds("{\"checkpoint\":\"ckpt-000000000030\",\"global_"
                           "step\":30,\"metric\":\"auc\",\"value\":0.6}\n"));
}

TEST_F(BestCheckpointTest, IsNotThereWithoutAnEvaluationOrThePolicy) {
  Commit(10);
  ASSERT_OK(UpdateBest(store_, job_, {}));
  EXPECT_THAT(Best(), StatusIs(absl::StatusCode::kNotFound));
  job_.mutable_checkpoint()->clear_keep_best();
  ASSERT_OK(UpdateBest(store_, job_, {At(10, .5)}));
  EXPECT_THAT(Best(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace parasol
