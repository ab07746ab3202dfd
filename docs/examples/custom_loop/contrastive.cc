// Metric learning: a network learns to map images of digits to points such that
// images of one digit are near each other, from pairs of images alone of which
// it is known whether they show the same. The contrastive loss (Hadsell, Chopra
// and LeCun, 2006) is of two calls of one network, and no loss of a job. What
// the points are worth: the digit of the nearest known image is right for .978
// of drawn digits, after 4 seconds on one core (1,000 beside 6,000 known ones).

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "docs/examples/custom_loop/digits.h"
#include "loop/loop.h"

ABSL_FLAG(std::string, data_dir, "",
          "Directory of MNIST's files; empty: digits are drawn.");
ABSL_FLAG(int, batch, 128, "Pairs of an update, of all replicas.");
ABSL_FLAG(int, iterations, 1500, "Number of updates.");
ABSL_FLAG(int, print_every, 100, "Iterations between two printed lines.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

constexpr float kMargin = 1;

constexpr char kEmbedding[] = R"(
  input_shape: [28, 28, 1]
  layer { flatten {} }
  layer { dense { units: 256 activation: RELU } }
  layer { dense { units: 16 } })";

// Returns pairs of digits: left, right, and 1 for those that show the same,
// which are one half.
absl::StatusOr<Dataset> Pairs(const Digits& digits, int64_t pairs,
                              uint64_t seed) {
  std::vector<std::vector<int64_t>> of_label(10);
  for (int64_t i = 0; i < digits.labels.size(); ++i) {
    of_label[digits.labels.ints()[i]].push_back(i);
  }
  const Tensor draws = RandomUniform({pairs, 4}, {.seed = seed});
  std::vector<int64_t> left;
  std::vector<int64_t> right;
  std::vector<float> same;
  for (int64_t i = 0; i < pairs; ++i) {
    const absl::Span<const float> draw = draws.values().subspan(4 * i, 4);
    const auto pick = [](const std::vector<int64_t>& from, float share) {
      return from[static_cast<size_t>(share * static_cast<float>(from.size()))];
    };
    same.push_back(static_cast<float>(i % 2));
    const auto label = static_cast<int64_t>(10 * draw[0]);
    const auto others = 1 + static_cast<int64_t>(9 * draw[1]);
    left.push_back(pick(of_label[label], draw[2]));
    right.push_back(pick(
        of_label[same.back() == 1 ? label : (label + others) % 10], draw[3]));
  }
  return Dataset::FromTensors(
      {Gather(digits.images, Tensor::Ints(left, {pairs})),
       Gather(digits.images, Tensor::Ints(right, {pairs})),
       Tensor::Of(same, {pairs})});
}

// Returns the share of `asked` whose nearest image of `known` shows the same.
Tensor Accuracy(const Model& embedding, const Digits& known,
                const Digits& asked) {
  const Tensor points = embedding.Call(known.images);
  // Squared distances, less what all distances of an image have in common.
  const Tensor distances =
      ReduceSum(Square(points), 1) -
      2 * MatMul(embedding.Call(asked.images), points, {.transpose_b = true});
  const Tensor found = Gather(known.labels, ArgMax(-distances));
  return ReduceMean(Equal(found, asked.labels));
}

absl::Status Train(Strategy& strategy) {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const std::string directory = absl::GetFlag(FLAGS_data_dir);
  ASSIGN_OR_RETURN(const Digits digits,
                   LoadDigits(directory, "train", 6000, strategy.seed()));
  ASSIGN_OR_RETURN(const Digits others,
                   LoadDigits(directory, "t10k", 1000, ~strategy.seed()));
  ASSIGN_OR_RETURN(const Dataset pairs, Pairs(digits, 20000, strategy.seed()));
  const DistributedDataset batches = strategy.DistributeDataset(
      pairs.Shuffle(20000, strategy.seed()).Repeat().Batched(batch));

  ASSIGN_OR_RETURN(const Model embedding,
                   Model::Create("embedding", kEmbedding));
  ASSIGN_OR_RETURN(const auto adam,
                   loop::Optimizer::Create("adam", "adam {}",
                                           embedding.trainable_variables()));

  const auto step = [&](ReplicaContext&,
                        const loop::Batch& pair) -> absl::StatusOr<Tensor> {
    GradientTape tape;
    const Tensor left = embedding.Call(pair[0], {.training = true});
    const Tensor right = embedding.Call(pair[1], {.training = true});
    const Tensor& same = pair[2];
    const Tensor squares = ReduceSum(Square(left - right), 1);
    const Tensor apart = Relu(kMargin - Sqrt(squares + 1e-9f));
    const Tensor losses = same * squares + (1 - same) * Square(apart);
    const Tensor loss = ComputeAverageLoss(losses, batch);
    RETURN_IF_ERROR(adam.Minimize(loss, tape));
    return loss;
  };

  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  int64_t position = 0;  // in the pairs
  RETURN_IF_ERROR(strategy.Keep("position", &position));
  RETURN_IF_ERROR(strategy.Start());
  auto next = batches.begin();
  RETURN_IF_ERROR(next.Seek(position));
  while (training.Next()) {
    const Tensor loss = strategy.Reduce(kSum, strategy.Run(step, next.Next()));
    position = next.position();
    training.Report(batch, loss.scalar());
    const int64_t done = training.iteration() + 1;
    if (strategy.is_chief() && done % absl::GetFlag(FLAGS_print_every) == 0) {
      std::printf("iteration %d: loss %.5f\n", static_cast<int>(done),
                  loss.scalar());
    }
  }
  if (training.status().ok() && strategy.is_chief()) {
    std::printf("accuracy of the nearest image: %.4f\n",
                Accuracy(embedding, digits, others).scalar());
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv,
                  "Learns which images show the same digit, from pairs.");
  return program.Run(Train);
}
