#include "loop/peers/lone_peers.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/peers/testing/small_program.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LonePeersTest : public testing::Test {
 protected:
  LonePeersTest()
      : directory_(absl::StrCat(
            testing::TempDir(), "/lone_peers_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
  }

  ProgramSettings Settings() const {
    ProgramSettings settings;
    settings.checkpoint_directory = directory_;
    settings.checkpoint.set_every_steps(4);
    return settings;
  }

  static SmallProgram::Options ProgramOf(int64_t iterations) {
    return {.replicas = 2, .all_replicas = 2, .iterations = iterations};
  }

  // Returns the values of an undisturbed run.
  static std::vector<float> Undisturbed(int64_t iterations) {
    SmallProgram program(ProgramOf(iterations));
    LonePeers peers(2);
    EXPECT_OK(program.Run(peers));
    return program.Values();
  }

  const std::string directory_;
  SimulatedClock clock_;
};

TEST_F(LonePeersTest, SumsAreAddedInTheOrderOfReplicasInPlace) {
  LonePeers peers(3);
  std::vector<float> first = {1e8f, 1};
  std::vector<float> second = {1, 2};
  std::vector<float> third = {-1e8f, 3};
  ASSERT_OK(peers.AllReduce("x", {{0, first}, {1, second}, {2, third}},
                            absl::MakeSpan(third)));
  EXPECT_THAT(third, ElementsAre((1e8f + 1.0f) - 1e8f, 6));
}

TEST_F(LonePeersTest, ReplicasOfOtherShapesAreNamed) {
  LonePeers peers(2);
  std::vector<float> first = {1, 2};
  std::vector<float> second = {1};
  std::vector<float> sum(2);
  EXPECT_THAT(
      peers.AllReduce("loss", {{0, first}, {1, second}}, absl::MakeSpan(sum)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("loss: replica 1 brings 1 elements to a sum of 2")));
}

TEST_F(LonePeersTest, AProgramGoesOnFromItsLastCheckpointWithTheSameBits) {
  {
    SmallProgram::Options options = ProgramOf(10);
    // The process ends in the middle of its seventh iteration.
    options.before_commit = [](int64_t step) {
      return step == 6 ? absl::InternalError("lost") : absl::OkStatus();
    };
    SmallProgram program(options);
    LonePeers peers(2, Settings(), clock_);
    EXPECT_THAT(program.Run(peers), StatusIs(absl::StatusCode::kInternal));
    EXPECT_EQ(program.began_at(), 0);
  }
  SmallProgram program(ProgramOf(10));
  LonePeers peers(2, Settings(), clock_);
  EXPECT_OK(program.Run(peers));
  EXPECT_EQ(program.began_at(), 4);
  EXPECT_EQ(program.Values(), Undisturbed(10));
}

TEST_F(LonePeersTest, AProgramThatEndsHasALastCheckpoint) {
  SmallProgram program(ProgramOf(6));
  LonePeers peers(2, Settings(), clock_);
  ASSERT_OK(program.Run(peers));
  const CheckpointStore store(directory_);
  EXPECT_THAT(*store.ListSteps(), ElementsAre(0, 4, 6));
  EXPECT_TRUE(store.ReadManifest(6)->final());
}

TEST_F(LonePeersTest, AProgramThatHasEndedGoesOnWithMoreIterations) {
  for (const int64_t iterations : {6, 6, 11}) {
    SmallProgram program(ProgramOf(iterations));
    LonePeers peers(2, Settings(), clock_);
    EXPECT_OK(program.Run(peers));
    EXPECT_EQ(program.Values(), Undisturbed(iterations));
  }
}

TEST_F(LonePeersTest, AStoppedProgramHasACheckpointOfItsIteration) {
  SmallProgram::Options options = ProgramOf(10);
  LonePeers peers(2, Settings(), clock_);
  options.before_commit = [&](int64_t step) {
    if (step == 5) peers.Stop();
    return absl::OkStatus();
  };
  SmallProgram program(options);
  EXPECT_THAT(program.Run(peers), StatusIs(absl::StatusCode::kCancelled,
                                           HasSubstr("stopped at step 6")));
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(), ElementsAre(0, 4, 6));
}

TEST_F(LonePeersTest, AnIterationIsCommittedOnce) {
  SmallProgram program(ProgramOf(1));
  LonePeers peers(2);
  ASSERT_OK(program.Run(peers));
  EXPECT_THAT(peers.Commit({.step = 1}, program.store()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("iteration 1 is committed after 1")));
}

TEST_F(LonePeersTest, TheTrainingIsRecordedBesideTheCheckpoints) {
  SmallProgram program(ProgramOf(6));
  LonePeers peers(2, Settings(), clock_);
  ASSERT_OK(program.Run(peers));
  EXPECT_TRUE(fs::exists(directory_ + "/training.jsonl"));
}

}  // namespace
}  // namespace parasol
