// Memory that a step like the ones before it takes from the system.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "loop/model.h"
#include "loop/optimizer.h"
#include "loop/strategy.h"
#include "ml/model/testing/allocation_count.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

// Lists of tensors and a few objects of each step, which do not grow with the
// model or the batch; no tensor, gradient or activation.
constexpr int kLists = 45;

int AllocationsOfAStep(Strategy& strategy, const Model& model,
                       const Optimizer& adam, const Tensor& x,
                       const Tensor& y) {
  return CountAllocations([&] {
    EXPECT_OK(strategy.Run([&](ReplicaContext&) {
      GradientTape tape;
      const Tensor losses =
          SparseCategoricalCrossentropy(y, model.Call(x, {.training = true}));
      return adam.Minimize(ComputeAverageLoss(losses, 32), tape);
    }));
  });
}

TEST(StepAllocationTest, AStepLikeTheLastOneAllocatesNoTensors) {
  ASSERT_OK_AND_ASSIGN(const auto strategy, Strategy::Default());
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("m",
                    "input_shape: 16 layer { dense { units: 32 activation: "
                    "RELU } } layer { batch_normalization {} } layer { dropout "
                    "{ rate: .5 } } layer { dense { units: 4 } }"));
  ASSERT_OK_AND_ASSIGN(
      const Optimizer adam,
      Optimizer::Create("adam", "adam {}", model.trainable_variables()));
  const Tensor x = RandomNormal({32, 16}, {.seed = 1});
  const Tensor y = Tensor::Ints(std::vector<int64_t>(32, 3), {32});
  for (int step = 0; step < 3; ++step) {
    AllocationsOfAStep(*strategy, model, adam, x, y);
  }
  for (int step = 0; step < 5; ++step) {
    EXPECT_LE(AllocationsOfAStep(*strategy, model, adam, x, y), kLists);
  }
}

}  // namespace
}  // namespace parasol::loop
