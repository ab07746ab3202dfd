#include "ml/model/pass_recordings.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/cpu_device.h"
#include "ml/device/testing/recording_device.h"

namespace parasol {
namespace {

using ::testing::ContainsRegex;

constexpr float kImages[4] = {};
constexpr float kLabels[4] = {};

PassKey KeyOf(int64_t examples) {
  return {.examples = examples, .arrays = {kImages, kLabels, nullptr}};
}

class PassRecordingsTest : public ::testing::Test {
 protected:
  // Says how the pass was enqueued.
  std::string Run(const PassKey& key) {
    const int recorded = device_.recorded();
    const int replayed = device_.replayed();
    EXPECT_OK(recordings_.Run(key, [] { return absl::OkStatus(); }));
    if (device_.recorded() > recorded) return "recorded";
    return device_.replayed() > replayed ? "replayed" : "plain";
  }

  RecordingDevice device_;
  PassRecordings recordings_{device_};
};

TEST_F(PassRecordingsTest, TheFirstPassIsPlainTheSecondRecordedOthersReplayed) {
  EXPECT_EQ(Run(KeyOf(8)), "plain");
  EXPECT_EQ(Run(KeyOf(8)), "recorded");
  EXPECT_EQ(device_.replayed(), 1) << "what is recorded has not been done";
  EXPECT_EQ(Run(KeyOf(8)), "replayed");
  EXPECT_EQ(Run(KeyOf(8)), "replayed");
}

TEST_F(PassRecordingsTest, WhateverDiffersIsAnotherPass) {
  const std::vector<PassKey> keys = {
      KeyOf(8),
      KeyOf(3),
      {.examples = 8, .gradient_side = 1, .arrays = KeyOf(8).arrays},
      {.examples = 8, .arrays = {kImages + 1, kLabels, nullptr}},
      {.examples = 8, .arrays = {kImages, kLabels + 1, nullptr}},
      {.examples = 8, .arrays = {kImages, kLabels, kLabels}},
  };
  for (const char* how : {"plain", "recorded", "replayed"}) {
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(Run(keys[i]), how) << i;
  }
}

TEST_F(PassRecordingsTest, WhatWasUsedLongestAgoGoesFirst) {
  const int64_t many = PassRecordings::kMaxPasses;
  for (int64_t i = 0; i < many; ++i) Run(KeyOf(i));
  for (int64_t i = 0; i < many; ++i) EXPECT_EQ(Run(KeyOf(i)), "recorded");
  EXPECT_EQ(Run(KeyOf(0)), "replayed");
  EXPECT_EQ(Run(KeyOf(many)), "plain") << "in the place of 1";
  EXPECT_EQ(Run(KeyOf(0)), "replayed");
  EXPECT_EQ(Run(KeyOf(2)), "replayed");
  EXPECT_EQ(Run(KeyOf(1)), "plain");
}

// As with sizes or memory that change all the time.
TEST_F(PassRecordingsTest, KeysThatHardlyComeBackAreSeldomRecorded) {
  constexpr int kPasses = 1000;
  for (int i = 0; i < kPasses; ++i) Run(KeyOf(i / 2));
  EXPECT_LE(device_.recorded(),
            static_cast<int>(PassRecordings::kMaxPasses) +
                kPasses / PassRecordings::kPassesPerRecording);
  // Those that do come back are recorded soon after.
  const int recorded = device_.recorded();
  for (int i = 0; i < 3 * PassRecordings::kPassesPerRecording; ++i) {
    Run(KeyOf(-1 - i % 2));
  }
  EXPECT_EQ(device_.recorded(), recorded + 2);
  EXPECT_EQ(Run(KeyOf(-1)), "replayed");
  EXPECT_EQ(Run(KeyOf(-2)), "replayed");
}

TEST_F(PassRecordingsTest, ALineInTheLogSaysOnceThatPassesAreRecorded) {
  testing::internal::CaptureStderr();
  Run(KeyOf(8));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 8; ++i) Run(KeyOf(8 + i % 2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ContainsRegex("^I[^\n]*: training steps are recorded[^\n]*\n$"));
}

TEST_F(PassRecordingsTest, NothingIsReplayedOnceMemoryWasGivenBack) {
  Array<float> array = *device_.NewArray<float>(5);
  for (int i = 0; i < 3; ++i) Run(KeyOf(8));
  array = Array<float>();
  EXPECT_EQ(Run(KeyOf(8)), "plain");
  EXPECT_EQ(Run(KeyOf(8)), "recorded");
}

TEST_F(PassRecordingsTest, APassThatGivesMemoryBackIsNotWarmYet) {
  Array<float> scratch = *device_.NewArray<float>(5);
  EXPECT_OK(recordings_.Run(KeyOf(8), [&] {
    scratch = *device_.NewArray<float>(9);
    return absl::OkStatus();
  }));
  EXPECT_EQ(Run(KeyOf(8)), "plain");
  EXPECT_EQ(Run(KeyOf(8)), "recorded");
}

TEST_F(PassRecordingsTest, WhenRecordingFailsAllPassesArePlain) {
  device_.RefuseToRecord();
  int enqueued = 0;
  for (int i = 1; i <= 4; ++i) {
    EXPECT_OK(recordings_.Run(KeyOf(8), [&] {
      ++enqueued;
      return absl::OkStatus();
    }));
    EXPECT_EQ(enqueued, i);
  }
}

TEST_F(PassRecordingsTest, APassThatWasOnlyHalfRecordedIsEnqueuedPlainly) {
  Run(KeyOf(8));
  int calls = 0;
  EXPECT_OK(recordings_.Run(KeyOf(8), [&] {
    return ++calls == 1 ? absl::UnavailableError("a capture was broken")
                        : absl::OkStatus();
  }));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Run(KeyOf(8)), "plain");
}

TEST_F(PassRecordingsTest, WhenReplayingFailsAllPassesArePlain) {
  for (int i = 0; i < 3; ++i) Run(KeyOf(8));
  device_.RefuseToReplay();
  EXPECT_EQ(Run(KeyOf(8)), "plain");
  EXPECT_EQ(Run(KeyOf(8)), "plain");
}

TEST_F(PassRecordingsTest, ErrorsAreThoseOfAPlainPass) {
  const auto fails = [] { return absl::ResourceExhaustedError("full"); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(recordings_.Run(KeyOf(8), fails),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

TEST(PassesWithoutARecorderTest, AreAllPlain) {
  CpuDevice cpu(/*threads=*/1);
  PassRecordings recordings(cpu);
  int enqueued = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(recordings.Run(KeyOf(8), [&] {
      ++enqueued;
      return absl::OkStatus();
    }));
  }
  EXPECT_EQ(enqueued, 3);
}

}  // namespace
}  // namespace parasol
