// The semantics of tf.GradientTape.

#include "ml/tape/tape.h"

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/operations.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr GradientTape::Options kPersistent = {.persistent = true};

TEST(TapeTest, GivesTheGradientByAWatchedTensor) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = x * x;
  EXPECT_EQ(tape.Gradient(y, x).scalar(), 6);
}

TEST(TapeTest, GivesGradientsOnce) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = x * x;
  ASSERT_OK(tape.Gradient(y, x).status());
  EXPECT_THAT(
      tape.Gradient(y, x).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("persistent")));
}

TEST(TapeTest, GivesGradientsAgainIfPersistent) {
  const Tensor x = 3;
  GradientTape tape(kPersistent);
  tape.Watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  EXPECT_EQ(tape.Gradient(z, x).scalar(), 108);
  EXPECT_EQ(tape.Gradient(y, x).scalar(), 6);
  EXPECT_EQ(tape.Gradient(z, y).scalar(), 18);
}

TEST(TapeTest, WhatIsNotWatchedIsNotConnected) {
  const Tensor x = 3, other = 2;
  GradientTape tape(kPersistent);
  tape.Watch(other);
  const Tensor y = x * x;
  const Tensor gradient = tape.Gradient(y, x);
  EXPECT_FALSE(gradient.connected());
  EXPECT_THAT(gradient.status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(tape.Gradient(y, other).connected());
  EXPECT_THROW(gradient.scalar(), TensorError);
}

TEST(TapeTest, SaysWhichSourceIsNotConnected) {
  const Tensor x = 3, other = Tensor::Of({1, 2}, {2});
  GradientTape tape(kPersistent);
  tape.Watch(x);
  tape.Watch(other);
  const Tensor y = x * x;
  ASSERT_OK_AND_ASSIGN(const auto gradients, tape.Gradient(y, {x, other}));
  EXPECT_EQ(gradients[0].scalar(), 6);
  EXPECT_FALSE(gradients[1].connected());
  EXPECT_THAT(gradients[1].status().message(), HasSubstr("source 1"));
  ASSERT_OK_AND_ASSIGN(
      const auto zeros,
      tape.Gradient(y, {x, other},
                    {.unconnected = GradientTape::Unconnected::kZero}));
  EXPECT_THAT(zeros[1].values(), ElementsAre(0, 0));
}

TEST(TapeTest, SeveralTargetsAreSummed) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  const std::vector<Tensor> targets = {x * x, 5 * x};
  ASSERT_OK_AND_ASSIGN(const auto gradients,
                       tape.Gradient(targets, std::vector<Tensor>{x}));
  EXPECT_EQ(gradients[0].scalar(), 11);
}

TEST(TapeTest, ATargetThatIsASourceHasGradientOne) {
  const Tensor x = Tensor::Of({3, 4}, {2});
  GradientTape tape(kPersistent);
  tape.Watch(x);
  EXPECT_THAT(tape.Gradient(x, x).values(), ElementsAre(1, 1));
  const Tensor y = x * 2;
  EXPECT_THAT(tape.Gradient(y, y).values(), ElementsAre(1, 1));
}

TEST(TapeTest, AValueInBetweenIsASource) {
  const Tensor x = 2;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  ASSERT_OK_AND_ASSIGN(const auto gradients, tape.Gradient(z, {x, y}));
  EXPECT_EQ(gradients[0].scalar(), 32);
  EXPECT_EQ(gradients[1].scalar(), 8);
}

TEST(TapeTest, OutputGradientsAreWeights) {
  const Tensor x = Tensor::Of({1, 2}, {2});
  GradientTape tape(kPersistent);
  tape.Watch(x);
  const Tensor y = Square(x);
  EXPECT_THAT(
      tape.Gradient(y, x, {.output_gradients = {Tensor::Of({10, 100}, {2})}})
          .values(),
      ElementsAre(20, 400));
  EXPECT_THAT(tape.Gradient(y, x, {.output_gradients = {Tensor(1)}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output gradient 0 has the shape []")));
  EXPECT_THAT(tape.Gradient(y, x, {.output_gradients = {1, 1}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TapeTest, PausesAndEnds) {
  const Tensor x = 3;
  GradientTape tape(kPersistent);
  tape.Watch(x);
  Tensor unseen;
  {
    const auto pause = tape.StopRecording();
    unseen = x * x;
  }
  const Tensor seen = x * x;
  tape.End();
  const Tensor late = x * x;
  EXPECT_FALSE(tape.Gradient(unseen, x).connected());
  EXPECT_EQ(tape.Gradient(seen, x).scalar(), 6);
  EXPECT_FALSE(tape.Gradient(late, x).connected());
}

TEST(TapeTest, ForgetsWhenReset) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = x * x;
  tape.Reset();
  EXPECT_FALSE(tape.Gradient(y, x).connected());
}

TEST(TapeTest, StopGradientStops) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = x * StopGradient(x * x);
  EXPECT_EQ(tape.Gradient(y, x).scalar(), 9);
}

TEST(TapeTest, TapesNestForSecondDerivatives) {
  const Tensor x = 2;
  GradientTape outer;
  outer.Watch(x);
  Tensor slope;
  {
    GradientTape inner;
    inner.Watch(x);
    slope = inner.Gradient(x * x * x, x);
  }
  EXPECT_EQ(slope.scalar(), 12);
  EXPECT_EQ(outer.Gradient(slope, x).scalar(), 12);
}

TEST(TapeTest, APersistentTapeRecordsItsOwnGradients) {
  const Tensor x = 2;
  GradientTape tape(kPersistent);
  tape.Watch(x);
  const Tensor slope = tape.Gradient(x * x * x, x);
  const Tensor bend = tape.Gradient(slope, x);
  EXPECT_EQ(bend.scalar(), 12);
  EXPECT_EQ(tape.Gradient(bend, x).scalar(), 6);
}

TEST(TapeTest, AGradientPenaltyHasAGradient) {
  const Tensor w = Tensor::Of({3, 4}, {2, 1});
  const Tensor x = Tensor::Of({1, 1}, {1, 2});
  GradientTape outer;
  outer.Watch(w);
  Tensor norm;
  {
    GradientTape inner;
    inner.Watch(x);
    norm = Norm(inner.Gradient(MatMul(x, w), x));
  }
  // The gradient of (|w| - 1)² is 2 (|w| - 1) w / |w|.
  const Tensor gradient = outer.Gradient(Square(norm - 1), w);
  EXPECT_THAT(gradient.values(), Pointwise(FloatNear(1e-5), {4.8f, 6.4f}));
}

TEST(TapeTest, ReadsOfAVariableAreOneSource) {
  int key = 0;
  const Tensor value = 3;
  GradientTape tape;
  const Tensor y = Leaf(&key, value) * Leaf(&key, value);
  EXPECT_THAT(tape.WatchedVariables(), ElementsAre(&key));
  EXPECT_EQ(tape.Gradient(y, Leaf(&key, value)).scalar(), 6);
}

TEST(TapeTest, VariablesAreWatchedIfTheyMayBe) {
  int key = 0, frozen = 0;
  const Tensor value = 3;
  {
    GradientTape tape;
    const Tensor y = Leaf(&key, value) * Leaf(&frozen, value, false);
    ASSERT_OK_AND_ASSIGN(
        const auto gradients,
        tape.Gradient(y, {Leaf(&key, value), Leaf(&frozen, value, false)}));
    EXPECT_EQ(gradients[0].scalar(), 3);
    EXPECT_FALSE(gradients[1].connected());
  }
  GradientTape tape({.watch_variables = false});
  const Tensor read = Leaf(&key, value);
  EXPECT_THAT(tape.WatchedVariables(), ElementsAre());
  tape.Watch(read);
  EXPECT_EQ(tape.Gradient(read * 5, Leaf(&key, value)).scalar(), 5);
}

TEST(TapeTest, ErrorsAreNamed) {
  const Tensor x = Tensor::Of({1, 2}, {2});
  GradientTape tape(kPersistent);
  tape.Watch(x);
  const Tensor wrong = x * Tensor::Of({1, 2, 3}, {3});
  EXPECT_THAT(tape.Gradient(wrong, x).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "target 0: multiply: shapes [2] and [3] don't "
                       "broadcast"));
  EXPECT_THAT(tape.Gradient(Tensor::Ints({1}, {}), x).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("target 0 is int64")));
}

TEST(TapeTest, ThreadsHaveTapesOfTheirOwn) {
  const Tensor x = 3;
  GradientTape tape;
  tape.Watch(x);
  Tensor y;
  std::thread([&] {
    y = x * x;
    GradientTape own;
    own.Watch(x);
    EXPECT_EQ(own.Gradient(x * 2, x).scalar(), 2);
  }).join();
  EXPECT_FALSE(tape.Gradient(y, x).connected());
}

// Squares its first input, as code without operations would.
std::shared_ptr<CustomOperation> Squaring(const Tensor& x,
                                          std::vector<bool>* wanted = nullptr) {
  auto operation = std::make_shared<CustomOperation>();
  operation->name = "squaring";
  operation->gradient = [x, wanted](const CustomGradientCall& call)
      -> absl::StatusOr<std::vector<Tensor>> {
    if (wanted != nullptr) {
      wanted->assign(call.wanted.begin(), call.wanted.end());
    }
    return std::vector<Tensor>{2 * x * call.d_outputs[0], Tensor()};
  };
  return operation;
}

TEST(TapeTest, CustomOperationsGiveGradients) {
  const Tensor x = 3, unused = 1;
  std::vector<bool> wanted;
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = Tensor::Of({9}, {});
  EXPECT_TRUE(IsRecorded({x}));
  EXPECT_FALSE(IsRecorded({unused}));
  RecordCustom({x, unused}, {y}, Squaring(x, &wanted));
  EXPECT_EQ(tape.Gradient(y * 2, x).scalar(), 12);
  EXPECT_THAT(wanted, ElementsAre(true, false));
}

TEST(TapeTest, CustomOperationsHaveASecondDerivativeIfTheySaySo) {
  for (const bool twice : {false, true}) {
    const Tensor x = 3, unused = 1;
    GradientTape outer(kPersistent);
    outer.Watch(x);
    Tensor slope;
    {
      GradientTape inner;
      inner.Watch(x);
      const Tensor y = Tensor::Of({9}, {});
      const auto operation = Squaring(x);
      operation->is_twice_differentiable = twice;
      RecordCustom({x, unused}, {y}, operation);
      slope = inner.Gradient(y * x, x);
    }
    EXPECT_EQ(slope.scalar(), 27);
    const Tensor bend = outer.Gradient(slope, x);
    if (twice) {
      EXPECT_EQ(bend.scalar(), 18);
    } else {
      EXPECT_THAT(bend.status(),
                  StatusIs(absl::StatusCode::kUnimplemented,
                           HasSubstr("squaring has no second derivative")));
    }
  }
}

TEST(TapeTest, ACustomGradientOfAnotherShapeIsAnError) {
  const Tensor x = Tensor::Of({1, 2}, {2});
  auto operation = std::make_shared<CustomOperation>();
  operation->name = "model \"m\"";
  operation->gradient =
      [](const CustomGradientCall&) -> absl::StatusOr<std::vector<Tensor>> {
    return {{Tensor(1)}};
  };
  GradientTape tape;
  tape.Watch(x);
  const Tensor y = Tensor::Of({9}, {});
  RecordCustom({x}, {y}, operation);
  EXPECT_THAT(tape.Gradient(y, x).status(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("gradient of model \"m\": the gradient by "
                                 "input 0 has the shape []")));
}

// Returns a · b, two numbers, whose gradient notes its calls, and gives the one
// by b before it has the one by a if it is told to.
Tensor NotedProduct(const Tensor& a, const Tensor& b,
                    std::vector<std::string>& notes) {
  const Tensor product = Tensor::Of({a.scalar() * b.scalar()}, {});
  auto operation = std::make_shared<CustomOperation>();
  operation->name = "noted product";
  operation->gradient = [=, &notes](const CustomGradientCall& call)
      -> absl::StatusOr<std::vector<Tensor>> {
    const Tensor by_b = call.d_outputs[0] * a;
    call.written(1, by_b);
    notes.push_back("product");
    return std::vector<Tensor>{call.d_outputs[0] * b, by_b};
  };
  RecordCustom({a, b}, {product}, std::move(operation));
  return product;
}

class ReadyTest : public ::testing::Test {
 protected:
  // Returns the gradients by leaves, each of which is noted when it is ready.
  std::vector<float> Gradients(GradientTape& tape, const Tensor& target,
                               absl::Span<const Tensor> leaves) {
    const auto gradients = tape.Gradient(
        target, leaves,
        {.ready = [this](size_t source, const Tensor& gradient) {
          notes_.push_back(
              absl::StrCat(source, gradient.connected()
                                       ? absl::StrCat(" is ", gradient.scalar())
                                       : " is not reached"));
          return absl::OkStatus();
        }});
    std::vector<float> values;
    for (const Tensor& gradient : gradients.value()) {
      values.push_back(gradient.connected() ? gradient.scalar() : -1);
    }
    return values;
  }
  Tensor Read(int variable) {
    return Leaf(&keys_[variable], 2.f + static_cast<float>(variable));
  }

  int keys_[4];
  std::vector<std::string> notes_;
};

TEST_F(ReadyTest, GradientsAreGivenWhileOthersAreComputed) {
  GradientTape tape;
  const Tensor first = NotedProduct(Read(0), Read(1), notes_);
  const Tensor target = first * Read(2);
  EXPECT_THAT(Gradients(tape, target, {Read(0), Read(1), Read(2), Read(3)}),
              ElementsAre(12, 8, 6, -1));
  EXPECT_THAT(notes_, ElementsAre("3 is not reached", "2 is 6", "1 is 8",
                                  "product", "0 is 12"));
}

// One that a record before reads, too, is given when that has added its share.
TEST_F(ReadyTest, AGradientIsGivenWhenNothingIsAddedToItAnyMore) {
  GradientTape tape;
  const Tensor b = Read(1);
  const Tensor early = Square(b);
  const Tensor target = NotedProduct(Read(0), b, notes_) + early;
  EXPECT_THAT(Gradients(tape, target, {Read(0), Read(1)}), ElementsAre(3, 8));
  EXPECT_THAT(notes_, ElementsAre("product", "0 is 3", "1 is 8"));
}

TEST_F(ReadyTest, OnATapeOfATapeTheyAreGivenToo) {
  GradientTape outer({.watch_variables = false});
  GradientTape tape({.persistent = true});
  const Tensor target = NotedProduct(Read(0), Read(1), notes_);
  EXPECT_THAT(Gradients(tape, target, {Read(0), Read(1), Read(1)}),
              ElementsAre(3, 2, 2));
  EXPECT_THAT(notes_, ElementsAre("product", "0 is 3", "1 is 2", "2 is 2"));
}

TEST_F(ReadyTest, AnErrorEndsTheGradient) {
  GradientTape tape;
  const Tensor target = NotedProduct(Read(0), Read(1), notes_);
  EXPECT_THAT(tape.Gradient(target, {Read(0), Read(1)},
                            {.ready =
                                 [](size_t, const Tensor&) {
                                   return absl::OutOfRangeError("enough");
                                 }})
                  .status(),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("enough")));
}

}  // namespace
}  // namespace parasol
