#include "worker/store/replica_parameters.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/testing/contributions.h"
#include "cluster/collective/testing/test_planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "worker/store/parameter_store.h"
#include "worker/store/planned_sums.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using PendingPtr = std::unique_ptr<TrainingParameters::Pending>;

constexpr size_t kWidth = 2;

job::Job MakeJob() {
  job::Job job;
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  job::SparseTable& table = *job.mutable_model()->add_sparse_table();
  table.set_name("users");
  table.set_width(kWidth);
  table.mutable_initializer()->mutable_zeros();
  return job;
}

std::vector<VariableSpec> MakeVariables(const std::vector<int64_t>& sizes) {
  std::vector<VariableSpec> variables;
  for (size_t i = 0; i < sizes.size(); ++i) {
    VariableSpec variable{.name = absl::StrCat("v", i), .shape = {sizes[i]}};
    variable.initializer.mutable_zeros();
    variables.push_back(variable);
  }
  return variables;
}

class ReplicaParametersTest : public testing::Test {
 protected:
  void Make(int replicas, const std::vector<int64_t>& sizes,
            bool sums_on_one_device = false) {
    sizes_ = sizes;
    local_ = *ParameterStore::Create(MakeVariables(sizes), MakeJob());
    ReplicaParameters::Options options{
        .replicas = replicas, .sums_on_one_device = sums_on_one_device};
    for (int i = 0; i < replicas; ++i) {
      options.devices.push_back(absl::StrCat("cpu:", i));
    }
    options.planned = planned_.get();
    parameters_ = std::make_unique<ReplicaParameters>(*local_, options);
  }

  PendingPtr Push(int64_t step, int replica, size_t variable,
                  const std::vector<float>& gradient) {
    TrainingParameters::PushRequest push;
    push.gradients = {{variable, gradient}};
    push.sync = {.step = step, .replica = replica};
    return parameters_->Push(std::move(push));
  }

  PendingPtr PushRows(int64_t step, int replica,
                      const std::vector<uint64_t>& ids,
                      const std::vector<float>& gradients) {
    TrainingParameters::PushRequest push;
    push.rows = {{0, ids, gradients}};
    push.sync = {.step = step, .replica = replica};
    return parameters_->Push(std::move(push));
  }

  std::vector<float> Pull(int64_t step, size_t variable) {
    std::vector<float> values(sizes_[variable]);
    TrainingParameters::PullRequest pull;
    pull.targets = {{variable, absl::MakeSpan(values)}};
    pull.min_updates = step;
    const auto pending = parameters_->Pull(std::move(pull));
    EXPECT_OK(pending->Wait());
    EXPECT_EQ(pending->outcome().min_updates, step);
    EXPECT_EQ(pending->outcome().max_updates, step);
    return values;
  }

  std::vector<float> PullRows(const std::vector<uint64_t>& ids) {
    std::vector<float> values(ids.size() * kWidth);
    TrainingParameters::PullRequest pull;
    pull.rows = {{0, ids, absl::MakeSpan(values)}};
    EXPECT_OK(parameters_->Pull(std::move(pull))->Wait());
    return values;
  }

  std::vector<int64_t> sizes_;
  std::unique_ptr<PlannedSums> planned_;
  std::unique_ptr<ParameterStore> local_;
  std::unique_ptr<ReplicaParameters> parameters_;
};

TEST_F(ReplicaParametersTest, TheMeanIsAppliedWhenAllReplicasHavePushed) {
  Make(2, {2});
  const std::vector<float> one = {1, 2}, two = {3, 6};
  const PendingPtr first = Push(0, 0, 0, one);
  EXPECT_FALSE(first->WaitFor(absl::ZeroDuration()));
  EXPECT_THAT(Pull(0, 0), Each(0));
  const PendingPtr second = Push(0, 1, 0, two);
  EXPECT_OK(second->Wait());
  EXPECT_TRUE(first->WaitFor(absl::ZeroDuration()));
  EXPECT_OK(first->Wait());
  EXPECT_THAT(Pull(1, 0), ElementsAre(-2, -4));
}

TEST_F(ReplicaParametersTest, APushOfSeveralVariablesWaitsForAll) {
  Make(2, {1, 1});
  const std::vector<float> gradient = {1};
  TrainingParameters::PushRequest both;
  both.gradients = {{0, gradient}, {1, gradient}};
  both.sync = {.step = 0, .replica = 0};
  const PendingPtr push = parameters_->Push(std::move(both));
  EXPECT_OK(Push(0, 1, 0, gradient)->Wait());
  EXPECT_FALSE(push->WaitFor(absl::ZeroDuration()));
  EXPECT_OK(Push(0, 1, 1, gradient)->Wait());
  EXPECT_OK(push->Wait());
}

TEST_F(ReplicaParametersTest, ARowIsDividedByTheReplicasThatTouchIt) {
  Make(2, {});
  const std::vector<uint64_t> both = {7, 8}, one = {7}, none = {};
  const std::vector<float> of_both = {2, 4, 6, 8}, of_one = {4, 8}, of_none;
  const PendingPtr first = PushRows(0, 0, both, of_both);
  EXPECT_OK(PushRows(0, 1, one, of_one)->Wait());
  EXPECT_OK(first->Wait());
  EXPECT_THAT(PullRows(both), ElementsAre(-3, -6, -6, -8));
  const PendingPtr second = PushRows(1, 1, none, of_none);
  EXPECT_OK(PushRows(1, 0, one, of_one)->Wait());
  EXPECT_OK(second->Wait());
  EXPECT_THAT(PullRows(both), ElementsAre(-7, -14, -6, -8));
}

// Adds in float, in the order of the replicas.
std::vector<float> MeanOf(const std::vector<std::vector<float>>& gradients) {
  std::vector<float> mean = gradients[0];
  for (size_t replica = 1; replica < gradients.size(); ++replica) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += gradients[replica][i];
  }
  for (float& element : mean) element /= gradients.size();
  return mean;
}

// Every replica has a thread, which pushes variables in another order at each
// step, and waits for all of them.
void RunReplica(ReplicaParameters& parameters, int replica, int steps,
                const std::vector<std::vector<float>>& gradients) {
  for (int step = 0; step < steps; ++step) {
    std::vector<PendingPtr> pushes;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const size_t variable = (i + replica + step) % gradients.size();
      TrainingParameters::PushRequest push;
      push.gradients = {{variable, gradients[variable]}};
      push.sync = {.step = step, .replica = replica};
      pushes.push_back(parameters.Push(std::move(push)));
    }
    for (const PendingPtr& push : pushes) EXPECT_OK(push->Wait());
  }
}

TEST_F(ReplicaParametersTest, ThreadsShareTheWorkAndSumInOrder) {
  constexpr int kSteps = 20;
  const std::vector<int64_t> sizes = {1, 100'003, 16384, 40'000};
  for (const bool on_one : {false, true}) {
    for (const int replicas : {1, 2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(replicas, on_one ? " on one" : ""));
      Make(replicas, sizes, on_one);
      // gradients[replica][variable]
      std::vector<std::vector<std::vector<float>>> gradients(replicas);
      for (int replica = 0; replica < replicas; ++replica) {
        for (const int64_t size : sizes) {
          std::vector<float>& gradient = gradients[replica].emplace_back(size);
          for (int64_t i = 0; i < size; ++i) {
            gradient[i] = std::sin(i + 1.f * replica) * std::exp2(i % 40 - 20);
          }
        }
      }
      {
        std::vector<std::jthread> threads;
        for (int replica = 0; replica < replicas; ++replica) {
          threads.emplace_back([&, replica] {
            RunReplica(*parameters_, replica, kSteps, gradients[replica]);
          });
        }
      }
      for (size_t variable = 0; variable < sizes.size(); ++variable) {
        std::vector<std::vector<float>> of_replicas;
        for (const auto& all : gradients) of_replicas.push_back(all[variable]);
        const std::vector<float> mean = MeanOf(of_replicas);
        std::vector<float> expected(sizes[variable]);
        for (int step = 0; step < kSteps; ++step) {
          for (size_t i = 0; i < mean.size(); ++i) expected[i] -= mean[i];
        }
        EXPECT_EQ(Pull(kSteps, variable), expected) << variable;
      }
    }
  }
}

// LAMB's step depends on all elements: one task has them all.
TEST_F(ReplicaParametersTest, AVariableIsUpdatedAsAWholeWhereItMustBe) {
  constexpr int kReplicas = 3, kSteps = 4;
  job::Job job = MakeJob();
  *job.mutable_model()->mutable_sparse_table(0)->mutable_optimizer() =
      job.optimizer();
  job.mutable_optimizer()->mutable_lamb()->set_weight_decay(.5);
  job.mutable_optimizer()->mutable_lamb()->add_exclude_from_weight_decay("v1");
  std::vector<VariableSpec> variables =
      MakeVariables({50'000, 40'000, 3, 16'384});
  for (VariableSpec& variable : variables) {
    variable.initializer.mutable_random_uniform()->set_minval(-1);
    variable.initializer.mutable_random_uniform()->set_maxval(1);
  }
  local_ = *ParameterStore::Create(variables, job);
  parameters_ = std::make_unique<ReplicaParameters>(
      *local_, ReplicaParameters::Options{.replicas = kReplicas});
  const auto plain = *ParameterStore::Create(variables, job);
  std::vector<std::vector<std::vector<float>>> gradients(kReplicas);
  std::vector<std::vector<float>> means;
  for (size_t variable = 0; variable < variables.size(); ++variable) {
    std::vector<std::vector<float>> of_variable;
    for (int replica = 0; replica < kReplicas; ++replica) {
      std::vector<float> gradient;
      for (int64_t i = 0; i < variables[variable].elements(); ++i) {
        gradient.push_back(std::sin(static_cast<float>(i + replica) * .1f));
      }
      gradients[replica].push_back(gradient);
      of_variable.push_back(std::move(gradient));
    }
    means.push_back(MeanOf(of_variable));
  }
  std::vector<std::thread> threads;
  for (int replica = 0; replica < kReplicas; ++replica) {
    threads.emplace_back([&, replica] {
      RunReplica(*parameters_, replica, kSteps, gradients[replica]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int step = 0; step < kSteps; ++step) {
    for (size_t variable = 0; variable < variables.size(); ++variable) {
      const TrainingParameters::Gradient mean = {variable, means[variable]};
      EXPECT_OK(plain->Push({mean})->Wait());
    }
  }
  for (size_t variable = 0; variable < variables.size(); ++variable) {
    EXPECT_EQ(local_->variables().optimizer(variable).needs_whole_variable(),
              variable != 1);
    for (int array = 0; array < 3; ++array) {
      EXPECT_EQ(*local_->variables().Read(variable, array),
                *plain->variables().Read(variable, array))
          << variable << ", array " << array;
    }
  }
}

TEST_F(ReplicaParametersTest, ReplicasThatOthersWaitForAreNamed) {
  Make(3, {1, 1});
  EXPECT_THAT(parameters_->Unanswered().peers, IsEmpty());
  const std::vector<float> gradient = {1};
  const PendingPtr first = Push(0, 0, 0, gradient);
  const PendingPtr second = Push(0, 2, 0, gradient);
  EXPECT_THAT(parameters_->Unanswered().peers,
              ElementsAre("replica/1 (cpu:1)"));
  EXPECT_OK(Push(0, 1, 0, gradient)->Wait());
  EXPECT_THAT(parameters_->Unanswered().peers, IsEmpty());
  EXPECT_OK(first->Wait());
  EXPECT_OK(second->Wait());
}

// One step of three replicas, of a block and a part of one.
TEST_F(ReplicaParametersTest, SumsPlannedInOrderHaveTheSameBits) {
  constexpr int kReplicas = 3;
  constexpr int64_t kSize = 20'000;
  std::vector<std::vector<float>> gradients;
  for (int replica = 0; replica < kReplicas; ++replica) {
    gradients.push_back(ContributionOf(replica, 0, kSize));
  }
  const auto values_after_step = [&] {
    Make(kReplicas, {kSize});
    std::vector<PendingPtr> pushes;
    for (int replica = 0; replica < kReplicas; ++replica) {
      pushes.push_back(Push(0, replica, 0, gradients[replica]));
    }
    for (const PendingPtr& push : pushes) EXPECT_OK(push->Wait());
    return Pull(1, 0);
  };
  const std::vector<float> want = values_after_step();
  ASSERT_OK_AND_ASSIGN(planned_,
                       PlannedSums::Create(OwnerSlicesPlanner(), kReplicas));
  EXPECT_TRUE(HasBits(values_after_step(), want));
}

TEST_F(ReplicaParametersTest, APlanThatIsWrongForABlockFailsThePushes) {
  ASSERT_OK_AND_ASSIGN(
      planned_,
      PlannedSums::Create(
          std::make_shared<TestPlanner>([](const Reduction& r, int rank) {
            return r.count > 100 ? CollectivePlan()
                                 : OwnerSlicesPlanner()->AllReduce(r, rank);
          }),
          2));
  // A block whose plan is wrong, and an end whose plan is right.
  Make(2, {16384 + 7});
  const std::vector<float> gradient(16384 + 7, 1);
  const PendingPtr first = Push(0, 0, 0, gradient);
  const PendingPtr second = Push(0, 1, 0, gradient);
  const auto is_wrong =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("all-reduce test of 16384 elements: element 0 is 0"));
  EXPECT_THAT(second->Wait(), is_wrong);
  EXPECT_THAT(first->Wait(), is_wrong);
}

TEST_F(ReplicaParametersTest, StopEndsAllWaits) {
  Make(2, {2});
  const std::vector<float> gradient = {1, 2};
  const PendingPtr before = Push(0, 0, 0, gradient);
  std::jthread waiter([&before] {
    EXPECT_THAT(before->Wait(), StatusIs(absl::StatusCode::kCancelled));
  });
  parameters_->Stop();
  parameters_->Stop();
  waiter.join();
  EXPECT_THAT(Push(0, 1, 0, gradient)->Wait(),
              StatusIs(absl::StatusCode::kCancelled));
  TrainingParameters::PullRequest pull;
  EXPECT_THAT(parameters_->Pull(std::move(pull))->Wait(),
              StatusIs(absl::StatusCode::kCancelled));
}

// What is pushed lies in the memory of replicas, which may be gone as soon as
// their waits have ended.
TEST_F(ReplicaParametersTest, AfterStopNobodyReadsWhatWasPushed) {
  constexpr int kReplicas = 4;
  for (int round = 0; round < 50; ++round) {
    Make(kReplicas, {300'000});
    std::vector<std::jthread> threads;
    for (int replica = 0; replica < kReplicas; ++replica) {
      threads.emplace_back([&, replica] {
        const auto gradient =
            std::make_unique<std::vector<float>>(300'000, 1.f);
        const PendingPtr push = Push(0, replica, 0, *gradient);
        if (replica == round % kReplicas) parameters_->Stop();
        push->Wait().IgnoreError();
        std::fill(gradient->begin(), gradient->end(), NAN);
      });
    }
    threads.clear();
  }
}

}  // namespace
}  // namespace parasol
