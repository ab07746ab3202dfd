#include "cluster/checkpoint/best_checkpoint.h"

#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/checkpoint_argument.h"
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

  void Commit(int64_t step, int64_t chief_epoch = 0) {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    manifest.set_run_id("run");
    manifest.set_chief_epoch(chief_epoch);
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
  void WriteBest(const std::string& text) {
    std::ofstream(directory_ + "/BEST") << text;
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

TEST_F(BestCheckpointTest, IsReadAsItWasWritten) {
  for (const int64_t step : {10, 20, 30}) Commit(step, /*chief_epoch=*/7);
  std::vector<Evaluation> evaluations = {At(10, .5), At(20, .75), At(30, .6)};
  for (Evaluation& evaluation : evaluations) {
    evaluation.run_id = "run";
    evaluation.chief_epoch = 7;
  }
  ASSERT_OK(UpdateBest(store_, job_, evaluations));
  const absl::StatusOr<BestCheckpoint> best = ReadBest(directory_);
  ASSERT_OK(best.status());
  EXPECT_EQ(best->path, store_.PathOf(20));
  EXPECT_EQ(best->global_step, 20);
  EXPECT_EQ(best->metric, "auc");
  EXPECT_EQ(best->value, .75);
}

TEST_F(BestCheckpointTest, FilesOfOlderVersionsAreRead) {
  Commit(20, /*chief_epoch=*/7);
  WriteBest(R"({"checkpoint":"ckpt-000000000020","global_step":20})");
  const absl::StatusOr<BestCheckpoint> best = ReadBest(directory_);
  ASSERT_OK(best.status());
  EXPECT_EQ(best->global_step, 20);
  EXPECT_TRUE(std::isnan(best->value));
}

TEST_F(BestCheckpointTest, ACheckpointThatIsNotTheEvaluatedOneIsRefused) {
  Commit(20, /*chief_epoch=*/8);
  const std::string line =
      R"({"checkpoint":"ckpt-000000000020","global_step":20,)";
  for (const char* rest :
       {R"("run_id":"other"})", R"("run_id":"run","chief_epoch":7})"}) {
    WriteBest(line + rest);
    EXPECT_THAT(ReadBest(directory_),
                StatusIs(absl::StatusCode::kNotFound,
                         testing::HasSubstr("but the checkpoint there is of "
                                            "run run, chief_epoch 8")))
        << rest;
  }
}

TEST_F(BestCheckpointTest, WhatIsNotThereIsNamedWithWhatToDo) {
  EXPECT_THAT(ReadBest(directory_),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("checkpoint { keep_best {} }")));
  EXPECT_THAT(ReadBest(directory_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("/none is no directory")));
  Commit(20);
  EXPECT_THAT(ReadBest(store_.PathOf(20)),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("is a checkpoint; name the "
                                          "directory that it is in")));
  WriteBest(R"({"checkpoint":"ckpt-000000000030","global_step":30})");
  EXPECT_THAT(ReadBest(directory_),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("names ckpt-000000000030, which is "
                                          "not in")));
}

TEST_F(BestCheckpointTest, WhatNobodyWroteIsDamage) {
  Commit(20);
  for (const std::string text :
       {"", "ckpt-000000000020", "{", "[]", "null", "{}",
        R"({"checkpoint":20,"global_step":20})",
        R"({"checkpoint":"ckpt-000000000020"})",
        R"({"checkpoint":"ckpt-000000000020","global_step":"20"})",
        R"({"checkpoint":"ckpt-000000000020","global_step":30})",
        R"({"checkpoint":"../ckpt-000000000020","global_step":20})",
        R"({"checkpoint":"ckpt-20","global_step":20})", "\xff\xfe"}) {
    WriteBest(text);
    EXPECT_THAT(ReadBest(directory_),
                StatusIs(absl::StatusCode::kDataLoss,
                         testing::HasSubstr("/BEST: is damaged")))
        << text;
  }
  WriteBest(absl::StrCat(
      R"({"checkpoint":"ckpt-000000000020","global_step":20,"metric":")",
      std::string(5000, 'x'), "\"}"));
  EXPECT_THAT(ReadBest(directory_), StatusIs(absl::StatusCode::kDataLoss));
  std::filesystem::remove(directory_ + "/BEST");
  ASSERT_EQ(mkfifo((directory_ + "/BEST").c_str(), 0600), 0);
  EXPECT_THAT(ReadBest(directory_), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(BestCheckpointTest, ItsNameStandsForItInAPath) {
  for (const int64_t step : {20, 30}) Commit(step);
  WriteBest(R"({"checkpoint":"ckpt-000000000020","global_step":20})");
  for (const char* end : {"/BEST", "//BEST", "/BEST/", "/./BEST"}) {
    EXPECT_THAT(CheckpointAt(directory_ + end),
                IsOkAndHolds(testing::EndsWith("/ckpt-000000000020")))
        << end;
  }
  EXPECT_EQ(DirectoryOfBest("BEST"), ".");
  EXPECT_EQ(DirectoryOfBest("/BEST"), "/");
  EXPECT_EQ(DirectoryOfBest("a/BEST"), "a");
  EXPECT_EQ(DirectoryOfBest("a/MYBEST"), std::nullopt);
  EXPECT_EQ(DirectoryOfBest("a/BEST/b"), std::nullopt);
  EXPECT_EQ(DirectoryOfBest(""), std::nullopt);
}

TEST_F(BestCheckpointTest, ADirectoryOfThatNameIsADirectory) {
  const std::string named_so = directory_ + "/BEST";
  absl::StatusOr<CheckpointStore> store =
      CheckpointStore::OpenForWriting(named_so);
  ASSERT_OK(store.status());
  durable::CheckpointManifest manifest;
  manifest.set_global_step(5);
  ASSERT_OK(store->Commit(*store->Begin(5), manifest));
  EXPECT_THAT(CheckpointAt(named_so), IsOkAndHolds(store->PathOf(5)));
}

}  // namespace
}  // namespace parasol
