// Policy gradients (REINFORCE): a policy learns to balance a pole on a cart,
// from episodes that it plays itself. There is no data set: each replica plays
// episodes of its own, and all replicas' gradients make one update.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "loop/loop.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

ABSL_FLAG(int, episodes, 32, "Episodes of an iteration, of all replicas.");
ABSL_FLAG(int, iterations, 60, "Number of updates of the policy.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

constexpr int kMostSteps = 200;
constexpr float kDiscount = .99f;

// The pole on a cart of Barto, Sutton and Anderson (1983): place and speed of
// the cart, angle of the pole and its speed.
class CartPole {
 public:
  explicit CartPole(absl::Span<const float> start) {
    for (int i = 0; i < 4; ++i) state_[i] = .1f * start[i] - .05f;
  }

  const std::array<float, 4>& state() const { return state_; }
  bool is_over() const {
    return std::abs(state_[0]) > 2.4f || std::abs(state_[2]) > .2095f;
  }

  void Push(bool to_the_right) {
    auto& [x, speed, angle, turn] = state_;
    const float force = to_the_right ? 10.f : -10.f;
    const float sine = std::sin(angle);
    const float cosine = std::cos(angle);
    const float pull = (force + .05f * turn * turn * sine) / 1.1f;
    const float spin = (9.8f * sine - cosine * pull) /
                       (.5f * (4.f / 3 - .1f * cosine * cosine / 1.1f));
    x += .02f * speed;
    speed += .02f * (pull - .05f * spin * cosine / 1.1f);
    angle += .02f * turn;
    turn += .02f * spin;
  }

 private:
  std::array<float, 4> state_;
};

// Two layers: the logits of a push to the left and to the right.
struct Policy {
  Variable hidden_kernel;
  Variable hidden_bias;
  Variable kernel;
  Variable bias;

  static absl::StatusOr<Policy> Create() {
    ASSIGN_OR_RETURN(
        Variable hidden_kernel,
        Variable::Create("policy/hidden/kernel", {4, 32}, "glorot_uniform {}"));
    ASSIGN_OR_RETURN(Variable hidden_bias,
                     Variable::Create("policy/hidden/bias", Zeros({32})));
    ASSIGN_OR_RETURN(Variable kernel, Variable::Create("policy/kernel", {32, 2},
                                                       "glorot_uniform {}"));
    ASSIGN_OR_RETURN(Variable bias,
                     Variable::Create("policy/bias", Zeros({2})));
    return Policy{hidden_kernel, hidden_bias, kernel, bias};
  }

  Tensor operator()(const Tensor& states) const {
    return MatMul(Tanh(MatMul(states, hidden_kernel) + hidden_bias), kernel) +
           bias;
  }
};

// What a replica has seen: one row for each step of each episode.
struct Played {
  std::vector<float> states;
  std::vector<int64_t> actions;
  std::vector<float> returns;  // discounted sums of what followed
  float total_reward = 0;
};

// Plays episodes side by side. What is drawn at random depends on the step and
// the replica alone.
Played Play(const Policy& policy, ReplicaContext& replica, uint64_t seed,
            int episodes) {
  RandomKey key = {.seed = seed,
                   .step = static_cast<uint64_t>(replica.step()),
                   .replica = static_cast<uint32_t>(replica.replica_id())};
  const Tensor starts = RandomUniform({episodes, 4}, key);
  ++key.count;
  const Tensor draws = RandomUniform({kMostSteps, episodes}, key);
  std::vector<CartPole> poles;
  for (int i = 0; i < episodes; ++i) {
    poles.emplace_back(starts.values().subspan(4 * i, 4));
  }
  std::vector<Played> of_episodes(episodes);
  for (int step = 0; step < kMostSteps; ++step) {
    std::vector<float> states;
    for (const CartPole& pole : poles) {
      states.insert(states.end(), pole.state().begin(), pole.state().end());
    }
    const Tensor chances = Softmax(policy(Tensor::Of(states, {episodes, 4})));
    for (int i = 0; i < episodes; ++i) {
      if (poles[i].is_over()) continue;
      const bool to_the_right =
          draws.values()[step * episodes + i] < chances.values()[2 * i + 1];
      Played& own = of_episodes[i];
      own.states.insert(own.states.end(), poles[i].state().begin(),
                        poles[i].state().end());
      own.actions.push_back(to_the_right);
      own.returns.push_back(1);
      poles[i].Push(to_the_right);
    }
  }
  Played all;
  for (Played& own : of_episodes) {
    all.total_reward += static_cast<float>(own.returns.size());
    for (size_t i = own.returns.size() - 1; i-- > 0;) {
      own.returns[i] += kDiscount * own.returns[i + 1];
    }
    all.states.insert(all.states.end(), own.states.begin(), own.states.end());
    all.actions.insert(all.actions.end(), own.actions.begin(),
                       own.actions.end());
    all.returns.insert(all.returns.end(), own.returns.begin(),
                       own.returns.end());
  }
  return all;
}

absl::Status Train(Strategy& strategy) {
  const int replicas = strategy.num_replicas_in_sync();
  const int episodes = absl::GetFlag(FLAGS_episodes);
  if (episodes % replicas != 0) {
    return absl::InvalidArgumentError(
        "--episodes is no multiple of the number of replicas");
  }
  ASSIGN_OR_RETURN(const Policy policy, Policy::Create());
  ASSIGN_OR_RETURN(
      const auto adam,
      loop::Optimizer::Create("adam", "adam { learning_rate: 0.01 }",
                              {policy.hidden_kernel, policy.hidden_bias,
                               policy.kernel, policy.bias}));

  // Returns the sum of the rewards of the replica's episodes.
  const auto step = [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    const Played played =
        Play(policy, replica, strategy.seed(), episodes / replicas);
    const int64_t steps = static_cast<int64_t>(played.actions.size());
    // The returns of all replicas, less their mean, in their deviations.
    const Tensor returns = Tensor::Of(played.returns, {steps});
    const Tensor all = replica.AllReduce(kSum, static_cast<float>(steps));
    const Tensor mean = replica.AllReduce(kSum, ReduceSum(returns)) / all;
    const Tensor variance =
        replica.AllReduce(kSum, ReduceSum(Square(returns - mean))) / all;
    const Tensor advantages = (returns - mean) / (Sqrt(variance) + 1e-6f);

    GradientTape tape;
    const Tensor chances =
        LogSoftmax(policy(Tensor::Of(played.states, {steps, 4})));
    const Tensor chosen = ReduceSum(
        chances * OneHot(Tensor::Ints(played.actions, {steps}), 2), 1);
    const Tensor loss = -ReduceSum(chosen * advantages) / all;
    RETURN_IF_ERROR(adam.Minimize(loss, tape));
    return Tensor(played.total_reward);
  };

  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  while (training.Next()) {
    const Tensor reward = strategy.Reduce(kSum, strategy.Run(step));
    const float mean = reward.scalar() / static_cast<float>(episodes);
    training.Report(episodes, -mean);
    if (strategy.is_chief()) {
      std::printf("iteration %lld: %.1f steps\n",
                  static_cast<long long>(training.iteration()),  // NOLINT
                  mean);
    }
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv,
                  "Learns to balance a pole on a cart, by policy gradients.");
  return program.Run(Train);
}
