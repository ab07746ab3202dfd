#include "serving/model_versions.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/read_all.h"
#include "proto/checkpoint.pb.h"
#include "serving/served_model.h"
#include "serving/serving_metrics.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kPrefixBytes = 16;  // of a manifest: magic, length

class ModelVersionsTest : public ::testing::Test {
 protected:
  void Write(int64_t step) {
    ASSERT_OK(ModelCheckpoint{.step = step}.Write(directory_));
  }
  std::string PathOf(int64_t step) {
    return ModelCheckpoint{.step = step}.PathIn(directory_);
  }

  // Loads nothing: the model of a step, or the step's fault.
  absl::StatusOr<std::shared_ptr<ServedModel>> Load(const std::string& path) {
    const int64_t step = std::atoll(path.c_str() + path.rfind('-') + 1);
    loads_.push_back(step);
    on_load_();
    RETURN_IF_ERROR(faults_[step]);
    ASSIGN_OR_RETURN(
        const ModelInputs inputs,
        InputsFromText(R"(input { name: "x" dense { shape: [1] } })"));
    ASSIGN_OR_RETURN(
        GivenExamples form,
        GivenExamples::Create(
            FromText<job::Dataset>(R"(tfrecord { label: "y" })"), inputs));
    return std::make_shared<ServedModel>(
        ServedModel::Parts{.form = std::move(form), .version = step},
        BatchLimits(), clock_, metrics_);
  }

  int64_t Served() {
    const std::shared_ptr<ServedModel> model = versions_.Current();
    return model == nullptr ? -1 : model->version();
  }

  const std::string directory_ = EmptyTestDirectory();
  SimulatedClock clock_;
  MetricsRegistry registry_;
  ServingMetrics metrics_{registry_};
  std::map<int64_t, absl::Status> faults_;
  std::function<void()> on_load_ = [] {};
  std::vector<int64_t> loads_;  // steps, in order
  ModelVersions versions_{
      {.directory = directory_},
      [this](const std::string& path) { return Load(path); },
      clock_,
      metrics_};
};

TEST_F(ModelVersionsTest, WhatCantBeLoadedNowIsTriedLaterAndAnOlderOneServes) {
  Write(20);
  Write(40);
  faults_[40] = absl::UnavailableError("a disk is away");
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 20);
  EXPECT_THAT(loads_, ElementsAre(40, 20));
  // Tries 1, 2, 4, 8, 16 and 30 s apart.
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    loads_.clear();
    clock_.Advance(absl::Seconds(seconds) - absl::Milliseconds(1));
    EXPECT_OK(versions_.Update());
    EXPECT_THAT(loads_, IsEmpty()) << seconds;
    clock_.Advance(absl::Milliseconds(1));
    EXPECT_OK(versions_.Update());
    EXPECT_THAT(loads_, ElementsAre(40)) << seconds;
  }
  faults_[40] = absl::OkStatus();
  clock_.Advance(absl::Seconds(30));
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 40);
  EXPECT_EQ(metrics_.refused_loads.value(), 0);
}

TEST_F(ModelVersionsTest, TheBestOneIsServedAndWhatTakesItsPlace) {
  ModelVersions best(
      {.directory = directory_, .is_best = true},
      [this](const std::string& path) { return Load(path); }, clock_, metrics_);
  const auto served = [&best]() -> int64_t {
    const std::shared_ptr<ServedModel> model = best.Current();
    return model == nullptr ? -1 : model->version();
  };
  const auto name = [this](int64_t step) {
    std::ofstream(directory_ + "/BEST")
        << R"({"checkpoint":")" << CheckpointName(step) << R"(","global_step":)"
        << step << "}";
  };
  Write(20);
  Write(40);
  EXPECT_OK(best.Update());  // waits for a first BEST
  EXPECT_EQ(served(), -1);
  name(20);
  EXPECT_OK(best.Update());
  EXPECT_EQ(served(), 20);
  Write(60);
  EXPECT_OK(best.Update());
  EXPECT_EQ(served(), 20);
  name(60);
  EXPECT_OK(best.Update());
  EXPECT_EQ(served(), 60);
  // The best one is gone, and the file damaged: nothing better is known.
  name(80);
  EXPECT_OK(best.Update());
  std::ofstream(directory_ + "/BEST") << "x";
  EXPECT_OK(best.Update());
  EXPECT_EQ(served(), 60);
  name(40);
  EXPECT_OK(best.Update());
  EXPECT_EQ(served(), 40);
  EXPECT_THAT(loads_, ElementsAre(20, 60, 40));
}

TEST_F(ModelVersionsTest, ADamagedBestAtTheStartIsAnError) {
  ModelVersions best(
      {.directory = directory_, .is_best = true},
      [this](const std::string& path) { return Load(path); }, clock_, metrics_);
  Write(20);
  std::ofstream(directory_ + "/BEST") << "x";
  EXPECT_THAT(best.Update(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ModelVersionsTest, AManifestThatCantBeReadNowDoesNotStopTheOthers) {
  Write(20);
  Write(40);
  const std::string manifest = PathOf(40) + "/MANIFEST";
  std::filesystem::rename(manifest, directory_ + "/kept");
  std::filesystem::create_symlink("/proc/self/mem", manifest);  // EIO
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 20);
  Write(30);
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 30);
  std::filesystem::rename(directory_ + "/kept", manifest);
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 40);
  EXPECT_EQ(metrics_.refused_loads.value(), 0);
}

TEST_F(ModelVersionsTest, TheManifestOfANewerProgramIsRefused) {
  Write(20);
  Write(40);
  const std::string path = PathOf(40) + "/MANIFEST";
  std::ifstream file(path);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  durable::CheckpointManifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(
      bytes.substr(kPrefixBytes, bytes.size() - kPrefixBytes - 4)));
  manifest.set_format_version(kFormatVersion + 1);
  bytes = bytes.substr(0, kPrefixBytes) + manifest.SerializeAsString();
  const uint32_t crc = MaskCrc(Crc32cOf(bytes));
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(crc >> (8 * i));
  std::ofstream(path) << bytes;
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 20);
  EXPECT_EQ(metrics_.refused_loads.value(), 1);
  EXPECT_THAT(versions_.States(),
              ElementsAre(Field(&VersionState::version, 20),
                          Field(&VersionState::version, 40)));
  EXPECT_THAT(versions_.States()[1].refused,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("format_version")));
}

TEST_F(ModelVersionsTest, ACopyUnderAnotherNameIsRefused) {
  Write(20);
  std::filesystem::copy(PathOf(20), PathOf(60),
                        std::filesystem::copy_options::recursive);
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 20);
  EXPECT_THAT(loads_, ElementsAre(20));
  EXPECT_EQ(metrics_.refused_loads.value(), 1);
}

TEST_F(ModelVersionsTest, ItEndsWhenAllAreRefusedAndNotBefore) {
  Write(20);
  Write(40);
  faults_[20] = absl::UnavailableError("a disk is away");
  faults_[40] = absl::DataLossError("damaged");
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), -1);
  faults_[20] = absl::DataLossError("damaged, too");
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(versions_.Update(),
              StatusIs(absl::StatusCode::kDataLoss, "damaged"));
}

TEST_F(ModelVersionsTest, AnOldOneIsFoundBehindManyThatAreRefused) {
  for (int64_t step = 1; step <= 12; ++step) {
    Write(step);
    if (step > 1) faults_[step] = absl::DataLossError("damaged");
  }
  EXPECT_OK(versions_.Update());
  EXPECT_OK(versions_.Update());
  EXPECT_EQ(Served(), 1);
}

TEST_F(ModelVersionsTest, AStopWithinALoadIsTheLastLoad) {
  Write(20);
  Write(40);
  faults_[40] = absl::DataLossError("damaged");
  absl::Notification is_loading;
  absl::Notification can_end;
  on_load_ = [&] {
    is_loading.Notify();
    can_end.WaitForNotification();
  };
  std::thread run([&] { EXPECT_OK(versions_.Run()); });
  is_loading.WaitForNotification();
  versions_.Stop();
  can_end.Notify();
  run.join();
  EXPECT_THAT(loads_, ElementsAre(40));
  EXPECT_EQ(Served(), -1);
}

}  // namespace
}  // namespace parasol
