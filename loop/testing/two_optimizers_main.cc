// A program that tests start as processes of a cluster: a line is fitted, its
// slope by one optimizer and its offset by another one, and a variable that no
// optimizer has counts the iterations.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "loop/loop.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

ABSL_FLAG(int64_t, iterations, 10, "Number of iterations.");
ABSL_FLAG(bool, without_training, false, "Each Run() is an iteration.");
ABSL_FLAG(double, offset_rate, .25, "Learning rate of the offset.");
ABSL_FLAG(int64_t, hold_at, -1,
          "Iteration in which the process stays while --hold_file is there.");
ABSL_FLAG(std::string, hold_file, "", "Path of a file; see --hold_at.");
ABSL_FLAG(bool, fails, false, "The step of iteration 3 fails.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

void Hold(int64_t iteration) {
  std::printf("iteration %d\n", static_cast<int>(iteration));
  std::fflush(stdout);
  while (iteration == absl::GetFlag(FLAGS_hold_at) &&
         std::filesystem::exists(absl::GetFlag(FLAGS_hold_file))) {
    Clock::Real().Pause(absl::Milliseconds(20));
  }
}

absl::Status Train(Strategy& strategy) {
  ASSIGN_OR_RETURN(const Variable slope,
                   Variable::Create("slope", Tensor::Of({.5f, -.5f}, {2, 1})));
  ASSIGN_OR_RETURN(const Variable offset,
                   Variable::Create("offset", {1}, "constant { value: .125 }"));
  ASSIGN_OR_RETURN(
      const Variable count,
      Variable::Create(
          "count", Zeros({1}),
          {.trainable = false, .aggregation = Aggregation::kOnlyFirstReplica}));
  ASSIGN_OR_RETURN(
      const auto adam,
      loop::Optimizer::Create("adam", "adam { learning_rate: 0.05 }", {slope}));
  job::Optimizer momentum;
  momentum.mutable_sgd()->set_learning_rate(absl::GetFlag(FLAGS_offset_rate));
  momentum.mutable_sgd()->set_momentum(.5);
  ASSIGN_OR_RETURN(const auto sgd,
                   loop::Optimizer::Create("sgd", momentum, {offset}));
  int64_t seen = 0;
  RETURN_IF_ERROR(strategy.Keep("seen", &seen));

  int64_t iteration = 0;
  const auto step = [&](ReplicaContext&) -> absl::StatusOr<Tensor> {
    if (absl::GetFlag(FLAGS_fails) && iteration == 3) {
      return absl::InvalidArgumentError("the step does not like iteration 3");
    }
    RandomKey key = {.seed = strategy.seed(),
                     .step = static_cast<uint64_t>(iteration)};
    const Tensor x = RandomNormal({8, 2}, key);
    const Tensor wanted = MatMul(x, Tensor::Of({2, 3}, {2, 1})) + 1;
    GradientTape tape({.persistent = true});
    const Tensor loss = ReduceMean(Square(MatMul(x, slope) + offset - wanted));
    RETURN_IF_ERROR(adam.Minimize(loss, tape));
    RETURN_IF_ERROR(sgd.Minimize(loss, tape));
    RETURN_IF_ERROR(count.AssignAdd(Tensor::Of({1}, {1})));
    return loss;
  };

  if (absl::GetFlag(FLAGS_without_training)) {
    for (; iteration < absl::GetFlag(FLAGS_iterations); ++iteration) {
      const PerReplica<Tensor> losses = strategy.Run(step);
      RETURN_IF_ERROR(losses.status());
      Hold(iteration);
    }
  } else {
    Training training(strategy,
                      {.iterations = absl::GetFlag(FLAGS_iterations)});
    while (training.Next()) {
      iteration = training.iteration();
      const PerReplica<Tensor> losses = strategy.Run(step);
      RETURN_IF_ERROR(losses.status());
      const Tensor loss = strategy.Reduce(kMean, losses);
      seen += 8;
      training.Report(8, loss.scalar());
      training.Record("twice_loss", 2 * loss.scalar());
      Hold(iteration);
    }
    RETURN_IF_ERROR(training.status());
  }
  std::printf("values");
  for (const Variable& variable : {slope, offset, count}) {
    const Tensor value = variable.Read();
    RETURN_IF_ERROR(value.status());
    for (const float element : value.values()) std::printf(" %.9g", element);
  }
  std::printf(" seen %d\n", static_cast<int>(seen));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv, "Fits a line, by two optimizers.");
  return program.Run(Train);
}
