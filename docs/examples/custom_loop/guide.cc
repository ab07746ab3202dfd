// The custom training loop of TensorFlow's guide "Distributed training with
// TensorFlow": a dense layer of one unit learns that 1 gives 1. Prints the
// losses of 20 steps, and of 10 more by an iterator.

#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "loop/loop.h"

ABSL_FLAG(int, batch_per_replica, 5, "Examples of a step, for each replica.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

absl::Status Train(Strategy& strategy) {
  const int64_t global_batch =
      absl::GetFlag(FLAGS_batch_per_replica) * strategy.num_replicas_in_sync();
  ASSIGN_OR_RETURN(
      Dataset data,
      Dataset::FromTensors({Tensor::Of({1}, {1, 1}), Tensor::Of({1}, {1, 1})}));
  const DistributedDataset batches =
      strategy.DistributeDataset(data.Repeat(100).Batched(global_batch));

  ASSIGN_OR_RETURN(
      const Variable kernel,
      Variable::Create("dense/kernel", Tensor::Of({-0.21567887f}, {1, 1})));
  ASSIGN_OR_RETURN(const Variable bias,
                   Variable::Create("dense/bias", Zeros({1})));
  ASSIGN_OR_RETURN(const loop::Optimizer sgd,
                   loop::Optimizer::Create("sgd", "sgd {}", {kernel, bias}));

  const auto step = [&](ReplicaContext&,
                        const loop::Batch& batch) -> absl::StatusOr<Tensor> {
    GradientTape tape;
    const Tensor logits = MatMul(batch[0], kernel) + bias;
    const Tensor per_example = BinaryCrossentropy(batch[1], logits);
    const Tensor loss = ComputeAverageLoss(per_example, global_batch);
    RETURN_IF_ERROR(sgd.Minimize(loss, tape));
    return loss;
  };

  for (const PerReplica<loop::Batch>& batch : batches) {
    const Tensor loss = strategy.Reduce(kSum, strategy.Run(step, batch));
    if (strategy.is_chief()) std::printf("%.8g\n", loss.scalar());
  }
  auto iterator = batches.begin();
  for (int i = 0; i < 10; ++i) {
    const Tensor loss =
        strategy.Reduce(kSum, strategy.Run(step, iterator.Next()));
    if (strategy.is_chief()) std::printf("%.8g\n", loss.scalar());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv,
                  "The custom training loop of TensorFlow's guide.");
  return program.Run(Train);
}
