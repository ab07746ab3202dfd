#include "loop/strategy.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/metric.h"
#include "loop/optimizer.h"
#include "loop/variable.h"
#include "ml/tape/operations.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;

std::unique_ptr<Strategy> Replicas(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(absl::StrCat("cpu:", i));
  auto strategy = Strategy::Mirrored(devices);
  EXPECT_THAT(strategy.status(), IsOk());
  return *std::move(strategy);
}

TEST(StrategyTest, TheDefaultOneIsOneObject) {
  EXPECT_EQ(&GetStrategy(), &GetStrategy());
  EXPECT_EQ(GetStrategy().Reduce(kSum, 1.f).scalar(), 1);
  EXPECT_EQ(GetStrategy().num_replicas_in_sync(), 1);
  const auto strategy = Replicas(2);
  {
    const Strategy::Scope scope(*strategy);
    EXPECT_EQ(&GetStrategy(), strategy.get());
  }
  EXPECT_NE(&GetStrategy(), strategy.get());
  EXPECT_THAT(ListDevices(), testing::Contains("cpu"));
}

TEST(StrategyTest, RunsAStepOnEachReplicaWithItsOwnArguments) {
  const auto strategy = Replicas(3);
  const PerReplica<Tensor> own({1.f, 2.f, 3.f});
  const auto results = strategy->Run(
      [](ReplicaContext& replica, const Tensor& value, int factor) {
        EXPECT_EQ(replica.num_replicas_in_sync(), 3);
        return value * static_cast<float>(factor) +
               100.f * static_cast<float>(replica.replica_id());
      },
      own, 10);
  ASSERT_THAT(results.status(), IsOk());
  EXPECT_THAT(results.values()[0].scalar(), 10);
  EXPECT_THAT(results.values()[1].scalar(), 120);
  EXPECT_THAT(results.values()[2].scalar(), 230);
  EXPECT_EQ(strategy->Reduce(kSum, results).scalar(), 360);
  EXPECT_EQ(strategy->Reduce(kMean, results).scalar(), 120);
}

TEST(StrategyTest, StepsMayReturnAnything) {
  const auto strategy = Replicas(2);
  std::atomic<int> calls = 0;
  EXPECT_THAT(strategy->Run([&](ReplicaContext&) { ++calls; }), IsOk());
  EXPECT_EQ(calls, 2);
  const auto texts =
      strategy->Run([](ReplicaContext& replica) -> absl::StatusOr<std::string> {
        return absl::StrCat("r", replica.replica_id());
      });
  EXPECT_THAT(texts.values(), ElementsAre("r0", "r1"));
}

TEST(StrategyTest, AnErrorOfOneReplicaEndsTheStepOfAll) {
  const auto strategy = Replicas(2);
  const auto all_reduce_beside = [&](const std::function<Tensor()>& fail) {
    return strategy
        ->Run([&](ReplicaContext& replica) {
          return replica.replica_id() == 1 ? fail()
                                           : replica.AllReduce(kSum, 1.f);
        })
        .status();
  };
  EXPECT_THAT(
      all_reduce_beside(
          []() -> Tensor { throw std::runtime_error("no such file: a.csv"); }),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("no such file: a.csv")));
  EXPECT_THAT(
      all_reduce_beside([]() -> Tensor {
        return MatMul(Zeros({2, 3}), Zeros({2, 3}));
      }),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[2, 3]")));
  EXPECT_THAT(all_reduce_beside([] { return Tensor(1.f); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("replica 1 (cpu:1) has ended its step"),
                             HasSubstr("AllReduce()"))));
  // The strategy is of use afterwards.
  EXPECT_THAT(strategy->Run([](ReplicaContext&) {}), IsOk());
}

TEST(StrategyTest, ReplicasThatReturnOtherShapesAreNamed) {
  const auto strategy = Replicas(2);
  const auto values = strategy->Run([](ReplicaContext& replica) {
    return Zeros({1 + replica.replica_id()});
  });
  EXPECT_THAT(
      strategy->Reduce(kSum, values).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1] and [2]")));
}

TEST(StrategyTest, ASumOfWhatIsNoReplicasIsRefused) {
  const auto strategy = Replicas(2);
  EXPECT_THAT(
      strategy->Reduce(kSum, Tensor(1.f)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 replicas")));
  EXPECT_EQ(strategy->Reduce(kMean, Tensor(3.f)).scalar(), 3);
}

TEST(StrategyTest, StepsWithinStepsAndLateVariablesAreRefused) {
  const auto strategy = Replicas(1);
  const Strategy::Scope scope(*strategy);
  EXPECT_THAT(strategy->Run([&](ReplicaContext&) {
    return strategy->Run([](ReplicaContext&) {});
  }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(
      Variable::Create("late", 1.f).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("late")));
}

TEST(StrategyTest, NamesAreUnique) {
  const auto strategy = Replicas(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_THAT(Variable::Create("w", 1.f).status(), IsOk());
  EXPECT_THAT(Variable::Create("w", 1.f).status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("w")));
}

// A line that a number of replicas fits to points.
class LineTest : public ::testing::TestWithParam<int> {
 protected:
  LineTest() : strategy_(Replicas(GetParam())), scope_(*strategy_) {}

  // The losses of a run of `steps` steps.
  std::vector<float> Losses(int steps, const std::string& optimizer) {
    const auto w = Variable::Create("w", Tensor::Of({.5f}, {1, 1}));
    const auto b = Variable::Create("b", Zeros({1}));
    const auto update = Optimizer::Create("sgd", optimizer, {*w, *b});
    EXPECT_THAT(update.status(), IsOk());
    const int64_t global = 8;
    std::vector<float> xs;
    std::vector<float> ys;
    for (int i = 0; i < 64; ++i) {
      xs.push_back(static_cast<float>(i % 7) / 4);
      ys.push_back(3 * xs.back() - 1);
    }
    const Dataset data = *Dataset::FromTensors(
        {Tensor::Of(xs, {64, 1}), Tensor::Of(ys, {64, 1})});
    auto batch =
        strategy_->DistributeDataset(data.Repeat().Batched(global)).begin();
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) {
      const auto loss = strategy_->Run(
          [&](ReplicaContext&, const Batch& part) -> absl::StatusOr<Tensor> {
            GradientTape tape;
            const Tensor error = MatMul(part[0], *w) + *b - part[1];
            const Tensor mean = ComputeAverageLoss(Square(error), global);
            const absl::Status status = update->Minimize(mean, tape);
            if (!status.ok()) return status;
            return mean;
          },
          batch.Next());
      losses.push_back(strategy_->Reduce(kSum, loss).scalar());
    }
    return losses;
  }

  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
};

// The figures of plain Python in double precision.
TEST_P(LineTest, LearnsAsOneReplicaDoes) {
  const std::vector<float> losses = Losses(200, "sgd { learning_rate: 0.2 }");
  double w = .5;
  double b = 0;
  for (int step = 0; step < 200; ++step) {
    double loss = 0;
    double dw = 0;
    double db = 0;
    for (int i = 0; i < 8; ++i) {
      const double x = (step * 8 + i) % 64 % 7 / 4.;
      const double error = w * x + b - (3 * x - 1);
      loss += error * error / 8;
      dw += 2 * error * x / 8;
      db += 2 * error / 8;
    }
    EXPECT_NEAR(losses[step], loss, 1e-5 * (1 + loss)) << step;
    w -= .2 * dw;
    b -= .2 * db;
  }
  EXPECT_LT(losses.back(), 1e-3);
}

TEST_P(LineTest, AGradientThatIsNotFiniteIsNamed) {
  const auto w = Variable::Create("w", 1.f);
  const auto sgd = Optimizer::Create("sgd", "sgd {}", {*w});
  const absl::Status status = strategy_->Run([&](ReplicaContext& replica) {
    GradientTape tape;
    const Tensor loss =
        Tensor(*w) * (replica.replica_id() == GetParam() - 1 ? NAN : 1.f);
    return sgd->Minimize(loss, tape);
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange,
                               AllOf(HasSubstr("gradient of w"),
                                     HasSubstr("update 0"))));
  EXPECT_EQ(w->Read().scalar(), 1);
}

TEST_P(LineTest, AnOptimizerWithoutAGradientSaysSo) {
  const auto w = Variable::Create("w", 1.f);
  const auto other = Variable::Create("other", 1.f);
  const auto sgd = Optimizer::Create("sgd", "sgd {}", {*w});
  EXPECT_THAT(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd->Minimize(Square(*other), tape);
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("sgd"), HasSubstr("w"))));
}

TEST_P(LineTest, AccuracyCountsTheExamplesOfAllReplicas) {
  const auto accuracy = AccuracyMetric::Create("accuracy");
  ASSERT_THAT(accuracy.status(), IsOk());
  const Dataset data = *Dataset::FromTensors(
      {Tensor::Of({0, 1, 2, 0}, {4}),
       Tensor::Of({5, 1, 0, 0, 1, 0, 0, 0, 9, 0, 0, 1}, {4, 3})});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : strategy_->DistributeDataset(data.Batched(4))) {
      ASSERT_THAT(strategy_->Run(
                      [&](ReplicaContext&, const Batch& part) {
                        return accuracy->Update(part[0], part[1]);
                      },
                      batch),
                  IsOk());
    }
    EXPECT_EQ(accuracy->Result().scalar(), .75);
    ASSERT_THAT(accuracy->Reset(), IsOk());
    EXPECT_EQ(accuracy->Result().scalar(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, LineTest, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace parasol::loop
