#include "deploy/local/complete_run.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/status_matchers.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

constexpr char kJob[] = R"(
    name: "digits"
    model {
      input_shape: 28 input_shape: 28
      layer { flatten {} }
      layer { name: "logits" dense { units: 10 } }
      loss { sparse_categorical_crossentropy {} }
    }
    train { idx { images: "a" labels: "b" } batch_size: 8 }
    eval { idx { images: "c" labels: "d" } batch_size: 8 }
    optimizer { sgd { learning_rate: 0.1 } }
    end { steps: 100 })";

class CompleteRunTest : public testing::Test {
 protected:
  CompleteRunTest() {
    std::filesystem::remove_all(directory_);
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kJob, &job));
    auto loaded = LoadJob(job, {});
    EXPECT_OK(loaded);
    if (loaded.ok()) loaded_ = *std::move(loaded);
  }

  void Write(int64_t step, bool final) {
    auto store = CheckpointStore::OpenForWriting(directory_);
    ASSERT_OK(store);
    ASSERT_OK_AND_ASSIGN(const std::string working, store->Begin(step));
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    manifest.set_run_id("run-a");
    manifest.set_final(final);
    *manifest.mutable_job() = loaded_.job;
    ASSERT_OK_AND_ASSIGN(const auto contents,
                         ContentsOf(loaded_.graph.variables, loaded_.job));
    contents.AddTo(manifest);
    ASSERT_OK(store->Commit(working, manifest));
  }
  void Evaluate(int64_t step) {
    Evaluation evaluation;
    evaluation.global_step = step;
    evaluation.run_id = "run-a";
    evaluation.final = true;
    ASSERT_OK(AppendEvaluation(directory_, evaluation));
  }
  std::optional<RunResult> Find(bool wants_evaluation = true) {
    return FindCompleteRun(loaded_, directory_, wants_evaluation);
  }

  const std::string directory_ = testing::TempDir() + "/complete_run";
  LoadedJob loaded_;
};

TEST_F(CompleteRunTest, AJobWhoseLastCheckpointWasEvaluatedIsComplete) {
  EXPECT_FALSE(Find().has_value()) << "there is no directory";
  Write(50, /*final=*/false);
  EXPECT_FALSE(Find().has_value());
  Write(100, /*final=*/true);
  EXPECT_FALSE(Find().has_value()) << "it has to be evaluated";
  EXPECT_TRUE(Find(/*wants_evaluation=*/false).has_value());
  Evaluate(100);
  ASSERT_TRUE(Find().has_value());
  EXPECT_TRUE(Find()->was_complete);
  EXPECT_EQ(Find()->exit_code, 0);
  EXPECT_EQ(Find()->global_step, 100);
  EXPECT_EQ(Find()->checkpoint, CheckpointStore(directory_).PathOf(100));
  EXPECT_EQ(Summary(*Find()).substr(0, 52),
            "Nothing to do: the job was complete at step 100.\n  c");
}

TEST_F(CompleteRunTest, ALaterEndOrAnotherModelIsForTheChief) {
  Write(100, /*final=*/true);
  Evaluate(100);
  loaded_.job.mutable_end()->set_steps(200);
  EXPECT_FALSE(Find().has_value());
  loaded_.job.mutable_end()->set_steps(100);
  ASSERT_TRUE(Find().has_value());
  loaded_.graph.variables.pop_back();
  EXPECT_FALSE(Find().has_value());
}

TEST_F(CompleteRunTest, WhatIsNoCheckpointIsPassedOver) {
  Write(100, /*final=*/true);
  Evaluate(100);
  const CheckpointStore store(directory_);
  std::ofstream(store.PathOf(9999)) << "a file";
  std::filesystem::copy(store.PathOf(100), store.PathOf(9998));
  ASSERT_TRUE(Find().has_value());
  RunResult result;
  AddCheckpoint(directory_, result);
  EXPECT_EQ(result.global_step, 100);
  EXPECT_EQ(result.checkpoint, store.PathOf(100));
}

}  // namespace
}  // namespace parasol
