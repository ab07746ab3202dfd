#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/layer.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kInputs = 5;
constexpr int64_t kUnits = 4;
constexpr int64_t kPieces = 3;

job::CustomLayer Declaration() {
  job::CustomLayer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        type: "maxout"
        output_shape: 4
        variable {
          name: "kernel"
          shape: [ 5, 12 ]
        }
        variable { name: "bias" shape: 12 }
        parameter { name: "pieces" value: "3" }
      )pb",
      &spec));
  return spec;
}

std::vector<double> Maxout(const LayerValues& values) {
  const std::vector<double>& kernel = values.variables[0];
  const std::vector<double>& bias = values.variables[1];
  constexpr int64_t kLines = kUnits * kPieces;
  std::vector<double> y;
  for (int64_t example = 0; example < values.examples; ++example) {
    std::vector<double> z = bias;
    for (int64_t i = 0; i < kInputs; ++i) {
      for (int64_t j = 0; j < kLines; ++j) {
        z[j] +=
            values.inputs[0][example * kInputs + i] * kernel[i * kLines + j];
      }
    }
    for (int64_t j = 0; j < kLines; j += kPieces) {
      y.push_back(*std::max_element(&z[j], &z[j] + kPieces));
    }
  }
  return y;
}

class MaxoutTest : public LayerTest {};

TEST_P(MaxoutTest, OutputAndGradientsAreTheReferences) {
  if (!device().shares_host_memory()) GTEST_SKIP() << "computes on the CPU";
  const std::vector<LayerInput> inputs = {{.shape = {kInputs}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeCustom(Declaration(), inputs));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, /*examples=*/7), Maxout);
}

INSTANTIATE_TEST_SUITE_P(Devices, MaxoutTest, DevicesUnderTest(), DeviceName);

TEST(MakeMaxoutTest, WhatDoesNotFitIsNamed) {
  job::CustomLayer spec = Declaration();
  EXPECT_THAT(MakeCustom(spec, {{.shape = {5, 1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("flatten {} before")));
  spec.mutable_parameter(0)->set_value("many");
  EXPECT_THAT(MakeCustom(spec, {{.shape = {5}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pieces is \"many\"")));
}

}  // namespace
}  // namespace parasol
