// Two models that train against each other, with a loss of a gradient: a
// Wasserstein GAN with gradient penalty (Gulrajani et al., 2017). A generator
// learns to draw points of eight clusters on a circle; a critic has several
// updates for each of the generator's.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "loop/loop.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

ABSL_FLAG(int, batch, 256, "Points of an update, of all replicas.");
ABSL_FLAG(int, iterations, 2000, "Number of updates of the generator.");
ABSL_FLAG(int, critic_updates, 5, "Updates of the critic for each of these.");
ABSL_FLAG(int, print_every, 200, "Iterations between two printed lines.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

constexpr int kNoise = 4;
constexpr int kClusters = 8;
constexpr float kPenalty = .1f;

// A network of three dense layers.
class Network {
 public:
  static absl::StatusOr<Network> Create(const std::string& name,
                                        const std::vector<int64_t>& sizes) {
    Network network;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      ASSIGN_OR_RETURN(
          const Variable kernel,
          Variable::Create(absl::StrCat(name, "/kernel_", i),
                           {sizes[i], sizes[i + 1]}, "glorot_uniform {}"));
      ASSIGN_OR_RETURN(const Variable bias,
                       Variable::Create(absl::StrCat(name, "/bias_", i),
                                        Zeros({sizes[i + 1]})));
      network.variables_.push_back(kernel);
      network.variables_.push_back(bias);
    }
    return network;
  }

  const std::vector<Variable>& variables() const { return variables_; }

  Tensor operator()(Tensor x) const {
    for (size_t i = 0; i < variables_.size(); i += 2) {
      x = MatMul(x, variables_[i]) + variables_[i + 1];
      if (i + 2 < variables_.size()) x = Softplus(x);
    }
    return x;
  }

 private:
  std::vector<Variable> variables_;
};

// Returns points [count, 2] of the clusters.
Tensor RealPoints(int64_t count, RandomKey key) {
  const Tensor which = RandomUniform({count}, key);
  ++key.count;
  const Tensor noise = RandomNormal({count, 2}, key);
  std::vector<float> points;
  for (int64_t i = 0; i < count; ++i) {
    const float cluster = std::floor(which.values()[i] * kClusters);
    const float angle = cluster * 2 * static_cast<float>(M_PI) / kClusters;
    points.push_back(2 * std::cos(angle) + .05f * noise.values()[2 * i]);
    points.push_back(2 * std::sin(angle) + .05f * noise.values()[2 * i + 1]);
  }
  return Tensor::Of(points, {count, 2});
}

// Returns the share of points near a cluster, and the number of clusters that
// have a share of their own.
struct Quality {
  float near = 0;
  int clusters = 0;
};
Quality QualityOf(const Tensor& points) {
  std::vector<int> hits(kClusters);
  int all = 0;
  const int64_t count = points.shape()[0];
  for (int64_t i = 0; i < count; ++i) {
    const float x = points.values()[2 * i];
    const float y = points.values()[2 * i + 1];
    for (int c = 0; c < kClusters; ++c) {
      const float angle =
          static_cast<float>(c) * 2 * static_cast<float>(M_PI) / kClusters;
      if (std::hypot(x - 2 * std::cos(angle), y - 2 * std::sin(angle)) < .4f) {
        ++hits[c];
        ++all;
      }
    }
  }
  Quality quality = {.near =
                         static_cast<float>(all) / static_cast<float>(count)};
  for (const int hit : hits) quality.clusters += hit * 40 >= count;
  return quality;
}

absl::Status Train(Strategy& strategy) {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t own = batch / strategy.num_replicas_in_sync();
  ASSIGN_OR_RETURN(const Network generator,
                   Network::Create("generator", {kNoise, 64, 64, 2}));
  ASSIGN_OR_RETURN(const Network critic,
                   Network::Create("critic", {2, 64, 64, 1}));
  const char adam[] = "adam { learning_rate: 0.001 beta_1: 0.5 beta_2: 0.9 }";
  ASSIGN_OR_RETURN(
      const auto generator_adam,
      loop::Optimizer::Create("generator_adam", adam, generator.variables()));
  ASSIGN_OR_RETURN(
      const auto critic_adam,
      loop::Optimizer::Create("critic_adam", adam, critic.variables()));

  const auto key_of = [&](const ReplicaContext& replica) {
    return RandomKey{.seed = strategy.seed(),
                     .step = static_cast<uint64_t>(replica.step()),
                     .replica = static_cast<uint32_t>(replica.replica_id())};
  };

  const auto critic_step =
      [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    RandomKey key = key_of(replica);
    const Tensor real = RealPoints(own, key);
    key.count = 2;
    const Tensor drawn = generator(RandomNormal({own, kNoise}, key));
    key.count = 3;
    const Tensor share = RandomUniform({own, 1}, key);
    const Tensor mixed = StopGradient(real * share + drawn * (1 - share));

    GradientTape tape;
    Tensor slopes;
    {
      GradientTape inner;
      inner.Watch(mixed);
      slopes = inner.Gradient(critic(mixed), mixed);
    }
    const Tensor norms = Sqrt(ReduceSum(Square(slopes), 1) + 1e-12f);
    const Tensor distance = ReduceSum(critic(real)) - ReduceSum(critic(drawn));
    const Tensor penalty = ReduceSum(Square(norms - 1));
    const Tensor loss =
        (kPenalty * penalty - distance) / static_cast<float>(batch);
    RETURN_IF_ERROR(critic_adam.Minimize(loss, tape));
    return distance / static_cast<float>(batch);
  };

  const auto generator_step =
      [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    GradientTape tape;
    const Tensor drawn =
        generator(RandomNormal({own, kNoise}, key_of(replica)));
    const Tensor loss = -ReduceSum(critic(drawn)) / static_cast<float>(batch);
    RETURN_IF_ERROR(generator_adam.Minimize(loss, tape));
    return drawn;
  };

  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  while (training.Next()) {
    Tensor distance;
    for (int i = 0; i < absl::GetFlag(FLAGS_critic_updates); ++i) {
      distance = strategy.Reduce(kSum, strategy.Run(critic_step));
    }
    const Tensor drawn = strategy.Gather(strategy.Run(generator_step));
    training.Report(batch, distance.scalar());
    const int64_t done = training.iteration() + 1;
    if (strategy.is_chief() && done % absl::GetFlag(FLAGS_print_every) == 0) {
      const Quality quality = QualityOf(drawn);
      std::printf(
          "iteration %d: distance %.4f, %.0f %% of points near %d of %d "
          "clusters\n",
          static_cast<int>(done), distance.scalar(), 100 * quality.near,
          quality.clusters, kClusters);
    }
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv,
                  "A Wasserstein GAN with gradient penalty on eight clusters.");
  return program.Run(Train);
}
