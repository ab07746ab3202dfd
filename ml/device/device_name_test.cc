#include "ml/device/device_name.h"

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(DeviceNameTest, ReadsOurNamesAndTensorFlows) {
  const struct {
    const char* name;
    const char* canonical;
  } kCases[] = {
      {"cpu", "cpu:0"},
      {"cpu:3", "cpu:3"},
      {"cuda:0", "cuda:0"},
      {"CPU:1", "cpu:1"},
      {"GPU:2", "cuda:2"},
      {"gpu", "cuda:0"},
      {"/gpu:0", "cuda:0"},
      {"/cpu:0", "cpu:0"},
      {"/device:GPU:1", "cuda:1"},
      {"/job:localhost/replica:0/task:0/device:GPU:0", "cuda:0"},
      {"/job:localhost/task:0/device:CPU:0", "cpu:0"},
      {"/replica:0/task:0/cpu:1", "cpu:1"},
  };
  for (const auto& test : kCases) {
    const auto device = ParseDeviceName(test.name);
    ASSERT_OK(device) << test.name;
    EXPECT_EQ(device->ToString(), test.canonical) << test.name;
  }
}

TEST(DeviceNameTest, RefusesWhatNamesNoDeviceOfThisMachine) {
  for (const char* name :
       {"", "/", "auto", "cpu:", "cpu:-1", "cpu:+1", "cpu: 1", "cpu:1024",
        "cuda:99999999999", "gpu:x", "tpu:0", "cuda0",
        "/job:worker/task:1/cpu:0", "/device:", "/task:1/device:GPU:0"}) {
    EXPECT_THAT(ParseDeviceName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("use auto, cpu, cpu:N or cuda:N")))
        << name;
  }
}

}  // namespace
}  // namespace parasol
