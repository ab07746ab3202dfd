// A program with a mistake, which tests start as processes of a cluster: a
// small network is fitted, and --fault says what is wrong.

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "loop/loop.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

ABSL_FLAG(std::string, fault, "",
          "exception, nan, shape, scope, outside, outside_step, model, early: "
          "the mistake.");
ABSL_FLAG(int, faulty_replica, 0, "Replica whose step makes it.");
ABSL_FLAG(int64_t, iterations, 1000000, "Number of iterations.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

// Number of iterations of a process before the mistake.
constexpr int64_t kFaultless = 3;

constexpr char kNetwork[] =
    "input_shape: 4 layer { dense { units: 3 } } layer { dense { units: 1 } }";
constexpr char kOtherNetwork[] =
    "input_shape: 4 layer { dense { units: 5 } } layer { dense { units: 1 } }";

bool Has(const std::string& fault) {
  return absl::GetFlag(FLAGS_fault) == fault;
}

// A variable that is made before there is a strategy.
std::optional<Variable> outside;

absl::Status Train(Strategy& strategy) {
  std::unique_ptr<Strategy> other;
  std::optional<Strategy::Scope> inner;
  if (Has("scope")) {
    ASSIGN_OR_RETURN(other, Strategy::Mirrored({"cpu:0", "cpu:1"}));
    inner.emplace(*other);
  }
  const bool is_other = Has("model") && !strategy.is_chief();
  ASSIGN_OR_RETURN(
      const Model network,
      Model::Create("network", is_other ? kOtherNetwork : kNetwork));
  std::vector<Variable> trained = network.trainable_variables();
  if (Has("outside")) trained.push_back(*outside);
  ASSIGN_OR_RETURN(
      const auto sgd,
      loop::Optimizer::Create("sgd", "sgd { learning_rate: 0.01 }", trained));

  int64_t done = 0;
  const auto step = [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    const bool errs =
        done == kFaultless &&
        replica.replica_id() == absl::GetFlag(FLAGS_faulty_replica);
    if (errs && Has("exception")) throw std::runtime_error("out of luck");
    GradientTape tape;
    Tensor loss = ReduceMean(Square(network.Call(Ones({8, 4})) - 1));
    if (errs && Has("nan")) loss = loss * std::nanf("");
    if (errs && Has("outside_step")) loss = loss * *outside;
    RETURN_IF_ERROR(sgd.Minimize(loss, tape));
    return errs && Has("shape") ? Ones({2}) * loss : loss;
  };
  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  while (training.Next()) {
    if (Has("early") && done == kFaultless && !strategy.is_chief()) {
      return absl::OkStatus();
    }
    training.Report(8, strategy.Reduce(kMean, strategy.Run(step)).scalar());
    ++done;
  }
  return training.status();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv, "Fits a network, with a mistake.");
  if (Has("outside") || Has("outside_step")) {
    outside = Variable::Create("outside", Ones({})).value();
  }
  return program.Run(Train);
}
