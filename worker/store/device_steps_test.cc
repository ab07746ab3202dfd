#include "worker/store/device_steps.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using PendingPtr = std::unique_ptr<TrainingParameters::Pending>;

constexpr int kReplicas = 3;

class DeviceStepsTest : public testing::Test {
 protected:
  DeviceStepsTest() {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "model { input_shape: 2 layer { dense { units: 1 } } "
        "loss { mean_squared_error {} } } "
        "optimizer { sgd { learning_rate: 1 } }",
        &job));
    FillDefaults(job);
    const Graph graph = *ResolveGraph(job.model());
    std::vector<DeviceVariables::Place> places;
    for (int i = 0; i < kReplicas; ++i) {
      devices_.push_back(std::make_unique<LazyCopyDevice>());
      models_.push_back(*Model::Create(graph, *devices_.back()));
      places.push_back(
          {models_.back()->device_training(), devices_.back().get()});
      names_.push_back(absl::StrCat("cuda:", i));
    }
    variables_ = *MirroredVariables::Create(
        graph.variables, job, places, MirroredVariables::Way::kAllDevices);
    EXPECT_OK(variables_->variables().Initialize(/*seed=*/0));
    steps_ = std::make_unique<DeviceSteps>(
        *variables_, DeviceSteps::Options{.first_step = 7, .devices = names_});
  }

  PendingPtr Push(int replica, int64_t step) {
    TrainingParameters::PushRequest push;
    push.sync = {.step = step, .replica = replica};
    steps_->Expect(*push.sync, DevicePart());
    return steps_->Push(std::move(push));
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<LazyCopyDevice>> devices_;
  std::vector<std::unique_ptr<Model>> models_;
  std::unique_ptr<MirroredVariables> variables_;
  std::unique_ptr<DeviceSteps> steps_;
};

TEST_F(DeviceStepsTest, AStepIsOverWithTheLastReplicasPush) {
  EXPECT_THAT(steps_->Unanswered().peers, IsEmpty());
  const PendingPtr first = Push(0, 7);
  const PendingPtr third = Push(2, 7);
  EXPECT_FALSE(first->WaitFor(absl::ZeroDuration()));
  EXPECT_THAT(steps_->Unanswered().peers, ElementsAre("replica/1 (cuda:1)"));
  EXPECT_THAT(variables_->variables().updates(), Each(0));
  EXPECT_OK(Push(1, 7)->Wait());
  EXPECT_OK(first->Wait());
  EXPECT_OK(third->Wait());
  EXPECT_THAT(steps_->Unanswered().peers, IsEmpty());
  EXPECT_THAT(variables_->variables().updates(), Each(1));
}

TEST_F(DeviceStepsTest, AllCopiesHaveTheUpdatesOfTheMean) {
  const std::vector<float> initial = [&] {
    const auto values = *variables_->variables().Read(0, kValueArray);
    return std::vector<float>(values.begin(), values.end());
  }();
  for (int i = 0; i < kReplicas; ++i) {
    for (float& element : models_[i]->device_training()->AllGradients()) {
      element = 3.f * i;  // the mean is 3
    }
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kReplicas; ++i) {
    threads.emplace_back([&, i] { EXPECT_OK(Push(i, 7)->Wait()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kReplicas; ++i) {
    const auto variables = *models_[i]->device_training()->Variables();
    EXPECT_EQ(variables[0].value[0], initial[0] - 3) << i;
    EXPECT_EQ(variables[0].value[1], initial[1] - 3) << i;
  }
}

TEST_F(DeviceStepsTest, StopEndsAllWaits) {
  const PendingPtr before = Push(0, 7);
  std::thread waiter([&before] {
    EXPECT_THAT(before->Wait(), StatusIs(absl::StatusCode::kCancelled));
  });
  steps_->Stop();
  steps_->Stop();
  waiter.join();
  EXPECT_THAT(Push(1, 7)->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DeviceStepsTest, APullOfNothingSaysWhichStepTheDevicesHave) {
  const auto steps = [this] {
    const PendingPtr pull = steps_->Pull(TrainingParameters::PullRequest());
    EXPECT_OK(pull->Wait());
    return pull->outcome().max_updates;
  };
  EXPECT_EQ(steps(), 7);
  for (int i = 0; i < kReplicas; ++i) Push(i, 7);
  EXPECT_EQ(steps(), 8);
}

}  // namespace
}  // namespace parasol
