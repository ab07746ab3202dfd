#include "ml/layer/activation.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "ml/layer/testing/reference_activation.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

class ActivationLayerTest : public LayerTest {};

TEST_P(ActivationLayerTest, IsTheReference) {
  for (job::Activation activation :
       {job::RELU, job::SIGMOID, job::TANH, job::GELU, job::SOFTMAX,
        job::LEAKY_RELU, job::SILU, job::SOFTPLUS, job::ELU}) {
    for (const Shape& shape : {Shape{5}, Shape{2, 3, 19}, Shape{}}) {
      SCOPED_TRACE(job::Activation_Name(activation));
      const std::vector<LayerInput> inputs = {{.shape = shape}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeActivation(activation, inputs));
      EXPECT_FALSE(layer->IsView());
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
                 [&](const LayerValues& v) {
                   return reference::Activation(
                       activation, v.inputs[0],
                       shape.empty() ? 1 : shape.back());
                 });
    }
  }
}

TEST(MakeActivationTest, ALinearOneIsAView) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeActivation(job::ACTIVATION_UNSPECIFIED, {{.shape = {2}}}));
  EXPECT_TRUE(layer->IsView());
}

TEST(MakeActivationTest, TakesOneTensor) {
  EXPECT_THAT(MakeActivation(job::RELU, {{.kind = LayerInput::Kind::kIds}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeActivation(job::RELU, {{.shape = {1}}, {.shape = {1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationLayerTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
