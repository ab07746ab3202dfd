#include "worker/group/step_gradients.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/training_parameters.h"
#include "worker/group/gradient_packs.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// One variable of two elements in one pack.
class StepGradientsTest : public testing::Test {
 protected:
  StepGradientsTest() {
    gradients_.AllocateBy([this](size_t elements) {
      std::shared_ptr<float[]> memory(new float[elements]());
      allocated_.push_back(memory);
      return memory;
    });
  }

  void Push(int64_t step, int replica, float gradient) {
    const std::vector<float> values(2, gradient);
    TrainingParameters::PushRequest push;
    push.gradients = {{0, values}};
    push.sync = {.step = step, .replica = replica};
    Add(push);
  }
  void Add(const TrainingParameters::PushRequest& push) {
    StepGradients::Addition addition = gradients_.Begin(push);
    addition.Copy();
    gradients_.End(std::move(addition));
  }
  // Returns the number of packs of replicas that have memory.
  int Kept() const {
    int kept = 0;
    for (const auto& memory : allocated_) kept += !memory.expired();
    return kept;
  }

  const GradientPacks packs_{{2}, 1 << 20};
  StepGradients gradients_{packs_, /*tables=*/1};
  std::vector<std::weak_ptr<float[]>> allocated_;
};

TEST_F(StepGradientsTest, AReplicaThatMovedAwayIsFreedWhenTheNextStepBegins) {
  gradients_.SetShare({0, 1, 2});
  for (const int replica : {0, 1, 2}) Push(0, replica, 1);
  gradients_.SetShare({1});
  EXPECT_EQ(Kept(), 3);
  Push(1, 1, 2);
  EXPECT_EQ(Kept(), 1);
  EXPECT_TRUE(gradients_.HasPack(1, 0, {1}));
  EXPECT_FALSE(gradients_.HasPack(1, 0, {0}));
}

// Its worker has pushed it, and does not do so again.
TEST_F(StepGradientsTest, AReplicaThatComesBackWithinAStepIsStillThere) {
  gradients_.SetShare({0, 1});
  for (const int replica : {0, 1}) Push(3, replica, 1 + replica);
  gradients_.SetShare({0});
  gradients_.SetShare({0, 1});
  ASSERT_TRUE(gradients_.HasPack(3, 0, {0, 1}));
  EXPECT_THAT(gradients_.ContributionsTo(0, {1}).at(0).values,
              ElementsAre(2, 2));
}

TEST_F(StepGradientsTest, GradientsOfAStepThatIsOverAreIgnored) {
  gradients_.SetShare({0});
  Push(5, 0, 1);
  Push(4, 0, 7);
  Push(5, 0, 7);
  ASSERT_TRUE(gradients_.HasPack(5, 0, {0}));
  EXPECT_THAT(gradients_.ContributionsTo(0, {0}).at(0).values,
              ElementsAre(1, 1));
}

TEST_F(StepGradientsTest, APackIsThereWhenItsCopyIs) {
  const std::vector<float> values = {3, 4};
  TrainingParameters::PushRequest push;
  push.gradients = {{0, values}};
  push.sync = {.step = 2, .replica = 0};
  gradients_.SetShare({0});
  StepGradients::Addition addition = gradients_.Begin(push);
  // Another thread with the same gradients has nothing to copy.
  Push(2, 0, 9);
  EXPECT_FALSE(gradients_.HasPack(2, 0, {0}));
  addition.Copy();
  gradients_.End(std::move(addition));
  ASSERT_TRUE(gradients_.HasPack(2, 0, {0}));
  EXPECT_THAT(gradients_.ContributionsTo(0, {0}).at(0).values,
              ElementsAre(3, 4));
}

// A thread that was stopped while it copied, and whose group has gone on.
TEST_F(StepGradientsTest, ALateCopyOfAnOlderStepTouchesNothingOfTheNextOne) {
  const std::vector<float> values = {3, 4};
  const std::vector<uint64_t> ids = {7};
  TrainingParameters::PushRequest push;
  push.gradients = {{0, values}};
  push.rows = {{0, ids, values}};
  push.sync = {.step = 2, .replica = 0};
  gradients_.SetShare({0});
  StepGradients::Addition late = gradients_.Begin(push);
  Push(3, 0, 5);
  late.Copy();
  gradients_.End(std::move(late));
  ASSERT_TRUE(gradients_.HasPack(3, 0, {0}));
  EXPECT_FALSE(gradients_.HasRows(3, 0, {0}));
  EXPECT_THAT(gradients_.ContributionsTo(0, {0}).at(0).values,
              ElementsAre(5, 5));
  // The next steps use the memory of this one.
  Push(4, 0, 6);
  EXPECT_EQ(Kept(), 1);
}

// Gradients of variables are on a device, or come later.
TEST_F(StepGradientsTest, RowsAloneTakeNoMemoryForVariables) {
  const std::vector<uint64_t> ids = {7};
  const std::vector<float> values = {3};
  TrainingParameters::PushRequest push;
  push.rows = {{0, ids, values}};
  push.sync = {.step = 2, .replica = 1};
  gradients_.SetShare({1});
  Add(push);
  EXPECT_TRUE(gradients_.HasRows(2, 0, {1}));
  EXPECT_FALSE(gradients_.HasPack(2, 0, {1}));
  EXPECT_EQ(Kept(), 0);
  Push(2, 1, 4);
  ASSERT_TRUE(gradients_.HasPack(2, 0, {1}));
  EXPECT_THAT(gradients_.ContributionsTo(0, {1}).at(0).values,
              ElementsAre(4, 4));
}

}  // namespace
}  // namespace parasol
