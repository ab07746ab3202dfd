#include "ml/layer/dense.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/reference.h"
#include "ml/layer/testing/layer_fixture.h"
#include "ml/layer/testing/reference_activation.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

std::vector<double> Product(const LayerValues& values, int64_t units) {
  const int64_t inputs = values.variables[0].size() / units;
  reference::Matrix x(values.examples, inputs);
  x.values = values.inputs[0];
  reference::Matrix kernel(inputs, units);
  kernel.values = values.variables[0];
  const bool has_bias = values.variables.size() > 1;
  return reference::Affine(
             x, kernel, has_bias ? values.variables[1] : std::vector<double>())
      .values;
}

class DenseTest : public LayerTest {};

TEST_P(DenseTest, IsTheReferenceWithEveryActivation) {
  for (job::Activation activation :
       {job::ACTIVATION_UNSPECIFIED, job::RELU, job::SIGMOID, job::TANH,
        job::GELU, job::SOFTMAX, job::LEAKY_RELU, job::SILU, job::SOFTPLUS,
        job::ELU}) {
    for (bool use_bias : {true, false}) {
      SCOPED_TRACE(job::Activation_Name(activation));
      job::Dense spec;
      spec.set_units(7);
      spec.set_use_bias(use_bias);
      spec.set_activation(activation);
      const std::vector<LayerInput> inputs = {{.shape = {5}}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeDense(spec, inputs));
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 4),
                 [activation](const LayerValues& v) {
                   return reference::Activation(activation, Product(v, 7), 7);
                 });
    }
  }
}

TEST(MakeDenseTest, AnActivationKeepsTheVariables) {
  job::Dense spec;
  spec.set_units(3);
  spec.set_kernel_l2(0.5);
  spec.set_activation(job::GELU);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeDense(spec, {{.shape = {2}}}));
  EXPECT_EQ(layer->output_shape(), Shape({3}));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_EQ(layer->variables()[0].shape, Shape({2, 3}));
  EXPECT_EQ(layer->variable_l2(), std::vector<double>({0.5, 0}));
}

TEST(MakeDenseTest, TakesAFlatInput) {
  job::Dense spec;
  spec.set_units(3);
  EXPECT_THAT(MakeDense(spec, {{.shape = {2, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeDense({}, {{.shape = {2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, DenseTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
