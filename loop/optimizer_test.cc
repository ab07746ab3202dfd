#include "loop/optimizer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/model.h"
#include "loop/peers/lone_peers.h"
#include "loop/strategy.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Notes of all threads, in order.
class Notes {
 public:
  void Add(absl::string_view note) {
    absl::MutexLock lock(&mu_);
    notes_.emplace_back(note);
  }
  // Waits until something has happened; false: it does not.
  bool Await(absl::string_view note) {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return absl::c_linear_search(notes_, note);
    };
    return mu_.AwaitWithTimeout(absl::Condition(&is_there), absl::Minutes(1));
  }
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mu_);
    return std::exchange(notes_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mu_);
};

// The peers of a process that is alone, which note what they add.
class NotingPeers : public LonePeers {
 public:
  NotingPeers(int replicas, Notes& notes)
      : LonePeers(replicas), notes_(notes) {}

  void BeginAllReduce(absl::string_view what,
                      std::vector<Contribution> contributions,
                      absl::Span<float> sum) override {
    notes_.Add(what);
    LonePeers::BeginAllReduce(what, std::move(contributions), sum);
  }
  absl::Status Await() override {
    notes_.Add("await");
    return LonePeers::Await();
  }

 private:
  Notes& notes_;
};

class OptimizerTest : public ::testing::Test {
 protected:
  static constexpr int kReplicas = 2;

  OptimizerTest()
      : strategy_(*Strategy::WithPeers(
            {"cpu:0", "cpu:1"}, {},
            std::make_unique<NotingPeers>(kReplicas, notes_))),
        scope_(*strategy_) {}

  // Returns 2x, whose gradient waits for the sum of w's.
  Tensor Doubled(const Tensor& x) {
    const Tensor doubled = Tensor::Of((2 * x).values(), x.shape());
    auto operation = std::make_shared<CustomOperation>();
    operation->name = "double";
    operation->gradient = [this](const CustomGradientCall& call)
        -> absl::StatusOr<std::vector<Tensor>> {
      EXPECT_TRUE(notes_.Await("gradient of w"));
      return std::vector<Tensor>{2 * call.d_outputs[0]};
    };
    RecordCustom({x}, {doubled}, std::move(operation));
    return doubled;
  }

  Notes notes_;
  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
};

// Replica 1 computes v's gradient only when w's are being added.
TEST_F(OptimizerTest, SumsBeginWhileGradientsAreComputed) {
  ASSERT_OK_AND_ASSIGN(const Variable v, Variable::Create("v", 3.f));
  ASSERT_OK_AND_ASSIGN(const Variable w, Variable::Create("w", 5.f));
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd { learning_rate: 1 }", {v, w}));
  ASSERT_OK(strategy_->Run([&](ReplicaContext& replica) {
    GradientTape tape;
    const Tensor inner = replica.replica_id() == 0 ? 2 * v : Doubled(v);
    return sgd.Minimize(inner * w, tape);
  }));
  EXPECT_EQ(v.Read().scalar(), 3 - 2 * 10);
  EXPECT_EQ(w.Read().scalar(), 5 - 2 * 6);
  EXPECT_THAT(notes_.Take(),
              ElementsAre("gradient of w", "gradient of v", "await"));
}

// The order of the sums does not depend on the order of the gradients, which
// may be another one in another process.
TEST_F(OptimizerTest, SumsBeginWithTheLastVariable) {
  ASSERT_OK_AND_ASSIGN(const Variable v, Variable::Create("v", 3.f));
  ASSERT_OK_AND_ASSIGN(const Variable w, Variable::Create("w", 5.f));
  ASSERT_OK_AND_ASSIGN(const Variable u, Variable::Create("u", 5.f));
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {} clipnorm: 9", {v, w, u}));
  ASSERT_OK(strategy_->Run([&](ReplicaContext& replica) {
    GradientTape tape;
    const Tensor a = Square(replica.replica_id() == 0 ? v : w);
    return sgd.Minimize(a + Square(replica.replica_id() == 0 ? w : v), tape);
  }));
  EXPECT_THAT(notes_.Take(),
              ElementsAre("gradient of w", "gradient of v", "await"));
  EXPECT_EQ(u.Read().scalar(), 5);
}

TEST_F(OptimizerTest, AVariableWithoutAGradientOnSomeReplicasIsNamed) {
  ASSERT_OK_AND_ASSIGN(const Variable v, Variable::Create("v", 3.f));
  ASSERT_OK_AND_ASSIGN(const Variable w, Variable::Create("w", 5.f));
  ASSERT_OK_AND_ASSIGN(const Optimizer sgd,
                       Optimizer::Create("sgd", "sgd {}", {v, w}));
  const auto run = [&](int reaches_both) {
    return strategy_->Run([&](ReplicaContext& replica) {
      GradientTape tape;
      return sgd.Minimize(
          replica.replica_id() >= reaches_both ? v * w : Square(v), tape);
    });
  };
  EXPECT_THAT(run(1), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("variable w has a gradient on some")));
  // Nothing is left of that step.
  EXPECT_THAT(run(0), IsOk());
}

// A layer's gradients go off before the gradients of the layers below it.
TEST_F(OptimizerTest, AModelsGradientsAreAddedFromItsLastLayerOn) {
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("m",
                    "input_shape: 2 layer { dense { units: 3 } } layer { "
                    "dense { units: 1 use_bias: false } }"));
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", model.trainable_variables()));
  ASSERT_OK(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(ReduceSum(model.Call(Ones({4, 2}))), tape);
  }));
  EXPECT_THAT(
      notes_.Take(),
      ElementsAre("gradient of m/dense_1/kernel", "gradient of m/dense_0/bias",
                  "gradient of m/dense_0/kernel", "await"));
}

}  // namespace
}  // namespace parasol::loop
