// What a function sends to a device with memory of its own, and what becomes of
// it when that is full or lost.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/model/function/testing/counting_device.h"
#include "ml/model/function/testing/function_fixture.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char kNetwork[] =
    "input_shape: 8 layer { name: 'a' dense { units: 64 activation: RELU } }"
    "layer { name: 'n' batch_normalization {} } layer { dropout { rate: .2 } }"
    "layer { name: 'b' dense { units: 4 } }";
// Elements of the kernels and biases of a, n's gamma and beta, and b's.
constexpr int64_t kTrained = 8 * 64 + 64 + 2 * 64 + 64 * 4 + 4;

class FunctionDeviceTest : public ::testing::Test {
 protected:
  FunctionDeviceTest()
      : function_(*ModelFunction::Create(*ResolveFunction(ParseModel(kNetwork)),
                                         device_)),
        batch_(RandomBatch(16, {8}, 4)),
        views_(batch_),
        versions_(function_->graph().variables.size(), 1) {
    for (const VariableSpec& variable : function_->graph().variables) {
      values_.emplace_back(variable.elements(), .5f);
      gradients_.emplace_back(variable.trained ? variable.elements() : 0);
      changes_.emplace_back(function_->IsChangedByCalls(values_.size() - 1)
                                ? variable.elements()
                                : 0);
    }
  }

  absl::StatusOr<ModelFunction::Call> Forward() {
    return function_->Forward(
        views_.all(), ConstSpans(values_),
        {.training = true, .seed = 1, .versions = versions_});
  }
  absl::Status Backward(const ModelFunction::Call& call) {
    const std::vector<float> ones(16 * 4, 1.f);
    const absl::Span<const float> by_output = ones;
    const auto variables = Spans(gradients_);
    return function_->Backward(call, absl::MakeConstSpan(&by_output, 1),
                               {.variables = variables});
  }
  // Makes `calls` calls and then takes the gradients and changes of each.
  absl::Status Step(int calls) {
    std::vector<ModelFunction::Call> open;
    for (int i = 0; i < calls; ++i) {
      absl::StatusOr<ModelFunction::Call> call = Forward();
      if (!call.ok()) return call.status();
      open.push_back(*std::move(call));
    }
    for (const ModelFunction::Call& call : open) {
      absl::Status status = Backward(call);
      status.Update(function_->ReadChanges(call, Spans(changes_)));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  CountingDevice device_;
  const std::unique_ptr<ModelFunction> function_;
  const Batch batch_;
  const BatchViews views_;
  Values values_;
  std::vector<uint64_t> versions_;
  Values gradients_;
  Values changes_;
};

TEST_F(FunctionDeviceTest, AStepLikeTheLastOneAllocatesNothingThere) {
  ASSERT_OK(Step(3));
  ASSERT_OK(Step(3));
  device_.Take();
  ASSERT_OK(Step(3));
  ASSERT_OK(Step(1));
  EXPECT_EQ(device_.Take().allocations, 0);
}

TEST_F(FunctionDeviceTest, AValueIsSentWhenItIsNew) {
  ASSERT_OK(Step(3));
  device_.Take();
  ASSERT_OK(Step(3));
  const int64_t unchanged = device_.Take().bytes_in;
  // Inputs and gradients by outputs, and little beside.
  EXPECT_LT(unchanged, int64_t{3 * 2 * 16 * (8 + 4) * sizeof(float)});
  // The last layer's kernel.
  const size_t kernel = 6;
  ASSERT_EQ(function_->graph().variables[kernel].name, "b/kernel");
  versions_[kernel] = 2;
  ASSERT_OK(Step(3));
  EXPECT_EQ(device_.Take().bytes_in - unchanged, 64 * 4 * sizeof(float));
  // A number that nothing is known of but that it is another one.
  versions_[kernel] = 1;
  ASSERT_OK(Step(3));
  EXPECT_EQ(device_.Take().bytes_in - unchanged, 64 * 4 * sizeof(float));
}

TEST_F(FunctionDeviceTest, WhatNobodyWantsIsNotFetched) {
  ASSERT_OK(Step(1));
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call, Forward());
  device_.Take();
  ASSERT_OK(Backward(call));
  EXPECT_GE(device_.Take().bytes_out, int64_t{kTrained * sizeof(float)});
  for (std::vector<float>& gradient : gradients_) gradient.clear();
  gradients_[7].resize(4);  // the last bias
  ASSERT_OK(Backward(call));
  EXPECT_LT(device_.Take().bytes_out, 1000);
  gradients_[7].clear();
  ASSERT_OK(Backward(call));
  EXPECT_EQ(device_.Take().bytes_out, 0);
}

TEST_F(FunctionDeviceTest, AFullDeviceIsSaidAndMayHaveRoomAgain) {
  device_.Refuse(true);
  EXPECT_THAT(
      ModelFunction::Create(*ResolveFunction(ParseModel(kNetwork)), device_)
          .status(),
      StatusIs(
          absl::StatusCode::kResourceExhausted,
          AllOf(HasSubstr("the variables' values"), HasSubstr("counting:0"))));
  EXPECT_THAT(Forward().status(), StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("counting:0")));
  device_.Refuse(false);
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call, Forward());
  device_.Refuse(true);
  EXPECT_THAT(Backward(call), StatusIs(absl::StatusCode::kResourceExhausted,
                                       HasSubstr("counting:0")));
  device_.Refuse(false);
  ASSERT_OK(Backward(call));
  const Values again = gradients_;
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call other, Forward());
  ASSERT_OK(Backward(other));
  EXPECT_EQ(gradients_, again);
}

TEST_F(FunctionDeviceTest, ALostDeviceIsSaidEachTime) {
  ASSERT_OK(Step(1));
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call, Forward());
  device_.Lose(true);
  const auto is_lost = StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("counting:0: it is lost"));
  EXPECT_THAT(Backward(call), is_lost);
  EXPECT_THAT(function_->ReadChanges(call, Spans(changes_)), is_lost);
  EXPECT_THAT(Forward().status(), is_lost);
  // What was to be sent when it failed is sent again.
  versions_.assign(versions_.size(), 2);
  for (std::vector<float>& value : values_) value.assign(value.size(), .25f);
  EXPECT_THAT(Forward().status(), is_lost);
  device_.Lose(false);
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call later, Forward());
  LazyCopyDevice other;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ModelFunction> alone,
      ModelFunction::Create(*ResolveFunction(ParseModel(kNetwork)), other));
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call want,
                       alone->Forward(views_.all(), ConstSpans(values_),
                                      {.training = true, .seed = 1}));
  EXPECT_EQ(later.output(0), want.output(0));
}

class LentValuesTest : public FunctionTestBase {};

// Calls of two sets of values, which take turns, and gradients of a call behind
// later ones: each has the bits of a function that has seen nothing else.
TEST_P(LentValuesTest, ACallHasItsValuesWhateverOthersHave) {
  const Batch batch = RandomBatch(16, {8}, 4);
  const BatchViews inputs(batch);
  const std::unique_ptr<ModelFunction> function = MakeFunction(kNetwork);
  const Values values[] = {ValuesFor(function->graph()), [&] {
                             Values other = ValuesFor(function->graph());
                             for (auto& value : other) value.front() += .25f;
                             return other;
                           }()};
  const Values by_outputs = {std::vector<float>(16 * 4, .5f)};
  const auto outcome = [&](ModelFunction& of, const ModelFunction::Call& call) {
    Computed computed = {.variables = WantTrained(of.graph())};
    EXPECT_OK(Backward(of, call, by_outputs, computed));
    for (size_t i = 0; i < computed.variables.size(); ++i) {
      if (!of.IsChangedByCalls(i)) continue;
      computed.inputs.resize(computed.variables.size());
      computed.inputs[i].resize(of.graph().variables[i].elements());
    }
    computed.inputs.resize(computed.variables.size());
    EXPECT_OK(of.ReadChanges(call, Spans(computed.inputs)));
    return computed;
  };
  // Numbers of values: as they are, and none.
  for (const bool has_versions : {true, false}) {
    std::vector<std::vector<uint64_t>> versions;
    std::vector<ModelFunction::Call> calls;
    for (size_t i = 0; i < 4; ++i) {
      ModelFunction::Mode mode = {.training = true, .seed = 3};
      versions.emplace_back(values[0].size(), 1 + i % 2);
      if (has_versions) mode.versions = versions.back();
      ASSERT_OK_AND_ASSIGN(
          ModelFunction::Call call,
          Forward(*function, inputs.all(), values[i % 2], mode));
      calls.push_back(std::move(call));
    }
    for (const size_t i : {2, 1, 0, 3}) {
      const std::unique_ptr<ModelFunction> alone = MakeFunction(kNetwork);
      ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                           Forward(*alone, inputs.all(), values[i % 2],
                                   {.training = true, .seed = 3}));
      EXPECT_EQ(call.output(0), calls[i].output(0)) << i;
      const Computed want = outcome(*alone, call);
      const Computed got = outcome(*function, calls[i]);
      EXPECT_EQ(got.variables, want.variables) << i;
      EXPECT_EQ(got.inputs, want.inputs) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LentValuesTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
