// A model on a device with memory of its own: what is sent there, and what
// errors say.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/function/function_graph.h"
#include "ml/model/function/testing/counting_device.h"
#include "ml/model/testing/model_fixture.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/model/model_operation.h"
#include "ml/tape/reduce.h"
#include "ml/tape/tape.h"
#include "ml/tape/tensor.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kKernel = 64 * 48;
constexpr int64_t kKernelBytes = kKernel * sizeof(float);

class ModelOnDeviceTest : public ::testing::Test {
 protected:
  ModelOnDeviceTest()
      : operation_(*ModelOperation::Create(
            "net",
            *ResolveFunction(ParseModel("input_shape: 64 layer { dense { "
                                        "units: 48 use_bias: false } }"),
                             "net"),
            device_)),
        kernel_(Filled({64, 48}, .5f)) {}

  // Calls the model with `kernel` as it is read from the variable.
  Tensor Call(const Tensor& kernel) {
    const Tensor x = Ones({2, 64});
    const Tensor read = Leaf(this, kernel);
    return operation_
        ->Call({.inputs = absl::MakeConstSpan(&x, 1),
                .variables = absl::MakeConstSpan(&read, 1),
                .training = true})
        .outputs[0];
  }

  CountingDevice device_;
  const std::unique_ptr<ModelOperation> operation_;
  Tensor kernel_;
};

TEST_F(ModelOnDeviceTest, AVariableThatIsReadAgainIsNotSentAgain) {
  ASSERT_OK(Call(kernel_).status());
  EXPECT_GE(device_.Take().bytes_in, kKernelBytes);
  {
    GradientTape tape;
    const Tensor loss = ReduceSum(Call(kernel_) + Call(kernel_));
    const Tensor gradient = tape.Gradient(loss, Leaf(this, kernel_));
    ASSERT_OK(gradient.status());
    EXPECT_EQ(gradient.values()[0], 2 * 2);
  }
  EXPECT_LT(device_.Take().bytes_in, kKernelBytes);
  // An update, in memory that may be the old value's.
  kernel_ = StopGradient(kernel_ + 1);
  const Tensor output = Call(kernel_);
  ASSERT_OK(output.status());
  EXPECT_EQ(output.values()[0], 1.5f * 64);
  EXPECT_GE(device_.Take().bytes_in, kKernelBytes);
}

// A program gets the memory of a value that has ended for the next one.
TEST_F(ModelOnDeviceTest, AValueInTheMemoryOfAnotherIsSent) {
  const auto shared = std::make_shared<std::vector<float>>(kKernel, 1.f);
  const auto alias = [&shared] {
    return Tensor::Alias(std::shared_ptr<const float>(shared, shared->data()),
                         {64, 48});
  };
  EXPECT_EQ(Call(alias()).values()[0], 64);
  shared->assign(kKernel, 2.f);
  EXPECT_EQ(Call(alias()).values()[0], 2 * 64);
}

TEST_F(ModelOnDeviceTest, ErrorsNameModelAndDevice) {
  device_.Refuse(true);
  EXPECT_THAT(Call(kernel_).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("model \"net\" on cpu (1 thread): "),
                             HasSubstr("counting:0, device memory"))));
  device_.Refuse(false);
  GradientTape tape;
  const Tensor loss = ReduceSum(Call(kernel_));
  ASSERT_OK(loss.status());
  device_.Lose(true);
  EXPECT_THAT(tape.Gradient(loss, Leaf(this, kernel_)).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("model \"net\" on cpu (1 thread): "),
                             HasSubstr("counting:0: it is lost"))));
}

}  // namespace
}  // namespace parasol
