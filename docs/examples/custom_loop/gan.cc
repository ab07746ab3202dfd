// The GAN of Keras's guide "Customizing what happens in fit()": a generator
// learns to draw digits from a discriminator that learns to tell them from
// people's. The discriminator may have several updates for each of the
// generator's.

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "docs/examples/custom_loop/digits.h"
#include "loop/loop.h"

ABSL_FLAG(std::string, data_dir, "",
          "Directory of MNIST's files; empty: digits are drawn.");
ABSL_FLAG(int, digits, 6000, "Number of digits that are read or drawn.");
ABSL_FLAG(int, batch, 64, "Digits of an update, of all replicas.");
ABSL_FLAG(int, iterations, 2000, "Number of updates of the generator.");
ABSL_FLAG(int, discriminator_updates, 1,
          "Updates of the discriminator for each of these.");
ABSL_FLAG(int, print_every, 100, "Iterations between two printed lines.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

constexpr int64_t kNoise = 64;

constexpr char kDiscriminator[] = R"(
  input_shape: [28, 28, 1]
  layer { conv2d { filters: 16 kernel_size: 3 stride: 2 padding: SAME activation: LEAKY_RELU } }
  layer { conv2d { filters: 32 kernel_size: 3 stride: 2 padding: SAME activation: LEAKY_RELU } }
  layer { flatten {} }
  layer { dense { units: 1 } })";

constexpr char kGenerator[] = R"(
  input_shape: 64
  layer { dense { units: 1568 activation: LEAKY_RELU } }
  layer { reshape { shape: [7, 7, 32] } }
  layer { conv2d_transpose { filters: 32 kernel_size: 4 stride: 2 padding: SAME activation: LEAKY_RELU } }
  layer { conv2d_transpose { filters: 16 kernel_size: 4 stride: 2 padding: SAME activation: LEAKY_RELU } }
  layer { conv2d { filters: 1 kernel_size: 7 padding: SAME activation: SIGMOID } })";

absl::Status Train(Strategy& strategy) {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t own = batch / strategy.num_replicas_in_sync();
  if (own * strategy.num_replicas_in_sync() != batch) {
    return absl::InvalidArgumentError(
        "--batch is no multiple of the number of replicas");
  }
  ASSIGN_OR_RETURN(const Digits digits,
                   LoadDigits(absl::GetFlag(FLAGS_data_dir), "train",
                              absl::GetFlag(FLAGS_digits), strategy.seed()));
  ASSIGN_OR_RETURN(const Dataset data, Dataset::FromTensors({digits.images}));
  const DistributedDataset batches = strategy.DistributeDataset(
      data.Shuffle(60000, strategy.seed()).Repeat().Batched(batch));

  ASSIGN_OR_RETURN(const Model generator,
                   Model::Create("generator", kGenerator));
  ASSIGN_OR_RETURN(const Model discriminator,
                   Model::Create("discriminator", kDiscriminator));
  const char adam[] = "adam { learning_rate: 0.0003 }";
  ASSIGN_OR_RETURN(const auto generator_adam,
                   loop::Optimizer::Create("generator_adam", adam,
                                           generator.trainable_variables()));
  ASSIGN_OR_RETURN(
      const auto discriminator_adam,
      loop::Optimizer::Create("discriminator_adam", adam,
                              discriminator.trainable_variables()));

  // Returns the digits that a replica draws in a step: its part of what all
  // that are in step with it would draw.
  const auto draw = [&](const ReplicaContext& replica) {
    const int part = replica.replica_id_in_sync_group();
    const Tensor noise = RandomNormal(
        {batch, kNoise},
        {.seed = strategy.seed(),
         .step = static_cast<uint64_t>(replica.step()),
         .replica = static_cast<uint32_t>(replica.replica_id() - part)});
    return generator.Call(Slice(noise, {part * own, 0}, {own, kNoise}),
                          {.training = true});
  };
  const auto score = [&](const Tensor& images) {
    return discriminator.Call(images, {.training = true});
  };

  const auto discriminator_step =
      [&](ReplicaContext& replica,
          const loop::Batch& real) -> absl::StatusOr<Tensor> {
    const Tensor drawn = draw(replica);
    GradientTape tape;
    const Tensor losses = BinaryCrossentropy(Ones({own, 1}), score(real[0])) +
                          BinaryCrossentropy(Zeros({own, 1}), score(drawn));
    const Tensor loss = ComputeAverageLoss(losses, 2 * batch);
    RETURN_IF_ERROR(discriminator_adam.Minimize(loss, tape));
    return loss;
  };
  const auto generator_step =
      [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    GradientTape tape;
    const Tensor losses =
        BinaryCrossentropy(Ones({own, 1}), score(draw(replica)));
    const Tensor loss = ComputeAverageLoss(losses, batch);
    RETURN_IF_ERROR(generator_adam.Minimize(loss, tape));
    return loss;
  };

  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  int64_t position = 0;  // in the digits
  RETURN_IF_ERROR(strategy.Keep("position", &position));
  RETURN_IF_ERROR(strategy.Start());
  auto next = batches.begin();
  RETURN_IF_ERROR(next.Seek(position));
  while (training.Next()) {
    Tensor real_or_drawn;
    for (int i = 0; i < absl::GetFlag(FLAGS_discriminator_updates); ++i) {
      real_or_drawn =
          strategy.Reduce(kSum, strategy.Run(discriminator_step, next.Next()));
    }
    const Tensor fooled = strategy.Reduce(kSum, strategy.Run(generator_step));
    position = next.position();
    training.Report(batch, fooled.scalar());
    const int64_t done = training.iteration() + 1;
    if (!strategy.is_chief() || done % absl::GetFlag(FLAGS_print_every) != 0) {
      continue;
    }
    std::printf("iteration %d: discriminator %.4f, generator %.4f\n",
                static_cast<int>(done), real_or_drawn.scalar(),
                fooled.scalar());
  }
  if (training.status().ok() && strategy.is_chief()) {
    PrintDigits(generator.Call(
        RandomNormal({4, kNoise}, {.seed = strategy.seed(), .count = 1})));
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv, "Learns to draw digits, as Keras's GAN.");
  return program.Run(Train);
}
