// Values of operations, and what is said of operands that don't fit.

#include "ml/tape/operations.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/tape/tensor.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Lt;
using ::testing::Pointwise;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Counting(const TensorShape& shape) {
  std::vector<float> values(shape.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::Of(values, shape);
}

TEST(OperationsTest, Broadcast) {
  const Tensor sum = Counting({2, 1, 3}) + Tensor::Of({10, 20}, {2, 1});
  EXPECT_EQ(sum.shape(), TensorShape({2, 2, 3}));
  EXPECT_THAT(sum.values(),
              ElementsAre(10, 11, 12, 20, 21, 22, 13, 14, 15, 23, 24, 25));
  EXPECT_EQ((Zeros({0, 3}) + Zeros({1})).shape(), TensorShape({0, 3}));
  EXPECT_THAT((1 - Tensor::Of({1, 2}, {2}) / 2).values(), ElementsAre(.5, 0));
  EXPECT_THAT(BroadcastTo(Tensor::Ints({1, 2}, {2, 1}), {2, 2}).ints(),
              ElementsAre(1, 1, 2, 2));
}

TEST(OperationsTest, KeepNan) {
  const Tensor x = Tensor::Of({kNan}, {1});
  for (const Tensor& y :
       {Relu(x), Maximum(x, 0), Maximum(0, x), Minimum(x, 0), Minimum(0, x),
        ClipByValue(x, 0, 1), Sigmoid(x), Tanh(x), Softplus(x), Exp(x), Sign(x),
        ReduceMax(x), Softmax(Concat({x, Ones({1})}, 0)), Abs(x)}) {
    EXPECT_THAT(y.values()[0], IsNan());
  }
}

TEST(OperationsTest, OverflowNowhere) {
  const Tensor x = Tensor::Of({-1000, 1000}, {2});
  EXPECT_THAT(Softplus(x).values(), ElementsAre(0, 1000));
  EXPECT_THAT(Sigmoid(x).values(), ElementsAre(0, 1));
  EXPECT_THAT(Tanh(x).values(), ElementsAre(-1, 1));
  EXPECT_THAT(Softmax(x).values(), ElementsAre(0, 1));
  EXPECT_THAT(LogSoftmax(x).values(), ElementsAre(-2000, 0));
  EXPECT_THAT(Exp(x).values(), ElementsAre(0, kInf));
  EXPECT_THAT(Log(Tensor::Of({0, 1}, {2})).values(), ElementsAre(-kInf, 0));
}

TEST(OperationsTest, Compare) {
  const Tensor a = Tensor::Of({1, 2, 3}, {3});
  EXPECT_THAT(Less(a, 2).values(), ElementsAre(1, 0, 0));
  EXPECT_THAT(LessEqual(a, 2).values(), ElementsAre(1, 1, 0));
  EXPECT_THAT(Greater(a, 2).values(), ElementsAre(0, 0, 1));
  EXPECT_THAT(GreaterEqual(a, 2).values(), ElementsAre(0, 1, 1));
  EXPECT_THAT(Equal(a, 2).values(), ElementsAre(0, 1, 0));
  EXPECT_THAT(NotEqual(a, 2).values(), ElementsAre(1, 0, 1));
  // Two numbers that are one as float32.
  const int64_t large = (int64_t{1} << 40) + 1;
  EXPECT_THAT(Equal(Tensor::Ints({large}, {1}), Tensor::Ints({large - 1}, {1}))
                  .values(),
              ElementsAre(0));
}

TEST(OperationsTest, Cast) {
  EXPECT_THAT(
      Cast(Tensor::Of({-1.7f, 2.9f, kInf, kNan}, {4}), DType::kInt64).ints(),
      ElementsAre(-1, 2, std::numeric_limits<int64_t>::max(), 0));
  EXPECT_THAT(Cast(Tensor::Ints({3, -4}, {2}), DType::kFloat32).values(),
              ElementsAre(3, -4));
}

TEST(OperationsTest, Reduce) {
  const Tensor x = Counting({2, 3, 2});
  EXPECT_EQ(ReduceSum(x).scalar(), 66);
  EXPECT_THAT(ReduceSum(x, 1).values(), ElementsAre(6, 9, 24, 27));
  EXPECT_THAT(ReduceSum(x, {0, 2}).values(), ElementsAre(14, 22, 30));
  EXPECT_THAT(ReduceMean(x, {0, 1}).values(), ElementsAre(5, 6));
  EXPECT_EQ(ReduceMean(x, {-1}, {.keep_dims = true}).shape(),
            TensorShape({2, 3, 1}));
  EXPECT_EQ(ReduceSum(x, {}, {.keep_dims = true}).shape(),
            TensorShape({1, 1, 1}));
  EXPECT_THAT(ReduceMax(x, 0).values(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(ReduceMin(x, {1, 2}).values(), ElementsAre(0, 6));
  EXPECT_THAT(ArgMax(Tensor::Of({1, 3, 3, 0, -1, -2}, {2, 3})).ints(),
              ElementsAre(1, 0));
  EXPECT_THAT(ArgMax(x, 1).ints(), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(ReduceSum(Zeros({0, 2}), 0).values()[1], 0);
  EXPECT_THAT(ReduceSum(x, Axes::None()).values(), x.values());
}

TEST(OperationsTest, LongSumsAreExact) {
  const Tensor x = Filled({1 << 20, 2}, .1f);
  EXPECT_NEAR(ReduceSum(x).scalar(), (1 << 21) * static_cast<double>(.1f), .02);
  EXPECT_THAT(ReduceMean(x, 0).values(), Each(FloatNear(.1f, 1e-8)));
}

TEST(OperationsTest, Norms) {
  EXPECT_THAT(Norm(Tensor::Of({3, 4, 6, 8}, {2, 2}), 1).values(),
              ElementsAre(5, 10));
  EXPECT_EQ(GlobalNorm({Tensor::Of({2, 3}, {2}), Tensor(6)}).scalar(), 7);
}

// Plain loops over [batch, m, k] and [batch, k, n].
std::vector<float> Products(const Tensor& a, const Tensor& b) {
  const int64_t batches = a.shape()[0], m = a.shape()[1], k = a.shape()[2];
  const int64_t n = b.shape()[2];
  std::vector<float> products;
  for (int64_t i = 0; i < batches * m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += a.values()[i * k + l] * b.values()[(i / m * k + l) * n + j];
      }
      products.push_back(static_cast<float>(sum));
    }
  }
  return products;
}

TEST(OperationsTest, MatMulTransposesAndBatches) {
  const Tensor a = RandomNormal({3, 4, 5}, {.seed = 1});
  const Tensor b = RandomNormal({3, 5, 6}, {.seed = 2});
  const Tensor at = TransposeAxes(a, {0, 2, 1});
  const Tensor bt = TransposeAxes(b, {0, 2, 1});
  const std::vector<float> want = Products(a, b);
  for (const Tensor& y :
       {MatMul(a, b), MatMul(at, b, {.transpose_a = true}),
        MatMul(a, bt, {.transpose_b = true}),
        MatMul(at, bt, {.transpose_a = true, .transpose_b = true})}) {
    EXPECT_EQ(y.shape(), TensorShape({3, 4, 6}));
    EXPECT_THAT(y.values(), Pointwise(FloatNear(1e-5), want));
  }
  const Tensor one = Slice(b, {1, 0, 0}, {1, -1, -1});
  EXPECT_THAT(
      MatMul(a, Squeeze(one, 0)).values(),
      Pointwise(FloatNear(1e-5), Products(a, BroadcastTo(one, {3, 5, 6}))));
  EXPECT_THAT(MatMul(Zeros({2, 0}), Zeros({0, 2})).values(), Each(0));
}

TEST(OperationsTest, Arrange) {
  const Tensor x = Counting({2, 3});
  EXPECT_EQ(Reshape(x, {3, -1}).shape(), TensorShape({3, 2}));
  EXPECT_THAT(TransposeAxes(x).values(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(ExpandDims(x, -1).shape(), TensorShape({2, 3, 1}));
  EXPECT_EQ(ExpandDims(x, 1).shape(), TensorShape({2, 1, 3}));
  EXPECT_EQ(Squeeze(ExpandDims(x, 0)).shape(), TensorShape({2, 3}));
  EXPECT_THAT(Concat({x, x}, 1).values(),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(Slice(x, {0, 1}, {-1, 2}).values(), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(Gather(x, Tensor::Ints({1, 1}, {2})).values(),
              ElementsAre(3, 4, 5, 3, 4, 5));
  EXPECT_THAT(Gather(Tensor::Ints({7, 8, 9, 10}, {2, 2}),
                     Tensor::Ints({1, 0, 1}, {3, 1}))
                  .ints(),
              ElementsAre(9, 10, 7, 8, 9, 10));
  EXPECT_THAT(SegmentSum(x, Tensor::Ints({1, 1}, {2}), 3).values(),
              ElementsAre(0, 0, 0, 3, 5, 7, 0, 0, 0));
  EXPECT_THAT(SegmentSum(x, Tensor::Ints({-1, 0}, {2}), 1).values(),
              ElementsAre(3, 4, 5));
  EXPECT_THAT(OneHot(Tensor::Ints({1, 7}, {2}), 2).values(),
              ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(Where(Tensor::Of({1, 0}, {2}), 0, 9).values(), ElementsAre(0, 9));
}

TEST(OperationsTest, DrawsDependOnTheKeyAlone) {
  const RandomKey key = {.seed = 5, .step = 2, .replica = 1, .count = 3};
  const auto draw = [](const RandomKey& k) {
    const Tensor drawn = RandomUniform({8}, k);
    return std::vector<float>(drawn.values().begin(), drawn.values().end());
  };
  EXPECT_EQ(draw(key), draw(key));
  for (RandomKey other : {RandomKey{6, 2, 1, 3}, RandomKey{5, 3, 1, 3},
                          RandomKey{5, 2, 0, 3}, RandomKey{5, 2, 1, 4}}) {
    EXPECT_NE(draw(key), draw(other));
  }
}

TEST(OperationsTest, DrawsHaveTheirDistributions) {
  constexpr int64_t kDraws = 100000;
  const Tensor uniform = RandomUniform({kDraws}, {.seed = 1}, -1, 3);
  EXPECT_THAT(uniform.values(), Each(AllOf(Ge(-1), Lt(3))));
  EXPECT_NEAR(ReduceMean(uniform).scalar(), 1, .02);
  const Tensor normal = RandomNormal({kDraws}, {.seed = 1});
  EXPECT_NEAR(ReduceMean(normal).scalar(), 0, .02);
  EXPECT_NEAR(ReduceMean(Square(normal)).scalar(), 1, .03);
  EXPECT_NEAR(ReduceMean(Less(Abs(normal), 1)).scalar(), .6827, .01);
  const Tensor shares = Tensor::Of({.2f, .5f, 0, .3f}, {1, 4});
  const Tensor drawn = RandomCategorical(Log(shares), kDraws, {.seed = 1});
  EXPECT_EQ(drawn.shape(), TensorShape({1, kDraws}));
  EXPECT_THAT(ReduceMean(OneHot(drawn, 4), {0, 1}).values(),
              Pointwise(FloatNear(.01f), shares.values()));
}

TEST(OperationsTest, FaultsNameWhatDoesNotFit) {
  const Tensor x = Counting({2, 3});
  const Tensor ints = Tensor::Ints({0, 3}, {2});
  const std::vector<std::pair<Tensor, std::string>> faults = {
      {x * Zeros({4}), "multiply: shapes [2, 3] and [4] don't broadcast"},
      {x + ints, "add: input 1 is int64; it must be float32"},
      {Equal(x, ints), "equal: input 1 is int64; it must be float32"},
      {MatMul(x, x),
       "matmul: shapes [2, 3] and [2, 3]: the first has not as "
       "many columns as the second has rows"},
      {MatMul(x, Zeros({3})), "matmul: shapes [2, 3] and [3]: a matrix has"},
      {ReduceSum(x, 2), "reduce_sum: axis 2 of a tensor with 2 axes"},
      {ReduceMean(x, {0, -2}), "reduce_sum: axis -2 stands twice"},
      {ReduceMax(Zeros({0})), "reduce_max: shape [0] has no elements"},
      {Reshape(x, {4, -1}), "reshape: 6 elements don't fit in shape [4, -1]"},
      {Reshape(x, {5}), "reshape: shape [2, 3] has 6 elements, [5] has 5"},
      {TransposeAxes(x, {0, 0}), "transpose: [0, 0] is not an order"},
      {Concat({x, Zeros({3, 3})}, 1),
       "concat: shapes [2, 3] and [3, 3] differ"},
      {Concat({}, 0), "concat: no tensors"},
      {Slice(x, {0, 2}, {2, 2}),
       "slice: shape [2, 3] has no elements from "
       "[0, 2] on of sizes [2, 2]"},
      {Gather(x, ints), "gather: id 3, at place 1, is not one of 2 rows"},
      {SegmentSum(x, ints, 3),
       "segment_sum: id 3, at place 1, is not one of 3"},
      {Where(x, x, Zeros({4})), "where: shapes [2, 3] and [4] don't"},
      {ClipByValue(x, 2, 1), "clip_by_value: the limit below, 2"},
      {Softmax(1), "softmax: shape [] has no innermost axis"},
      {Zeros({-1}), "shape [-1] has a size below 0"},
      {Zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}), "has more than 8 axes"},
      {Zeros({1 << 30, 1 << 30}), "more than 2^40 elements"},
      {Tensor::Of({1, 2}, {3}),
       "2 values for a tensor of shape [3], which has "
       "3"},
  };
  for (const auto& [tensor, text] : faults) {
    EXPECT_THAT(tensor.status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
    // Every operation gives the error on.
    EXPECT_EQ(ReduceSum(Exp(1 - tensor)).status(), tensor.status());
  }
}

TEST(OperationsTest, ValuesThatAreNotThereAreThrown) {
  EXPECT_THROW((Zeros({2}) + Zeros({3})).values(), TensorError);
  EXPECT_THROW(Zeros({2}).ints(), TensorError);
  EXPECT_THROW(Zeros({2}).scalar(), TensorError);
  EXPECT_EQ(Tensor::Ints({7}, {1, 1}).scalar(), 7);
}

TEST(OperationsTest, AnAliasKeepsTheMemory) {
  auto memory = std::make_shared<std::vector<float>>(3, 2.f);
  const float* const address = memory->data();
  const std::weak_ptr<std::vector<float>> watched = memory;
  {
    const Tensor x = Tensor::Alias(
        std::shared_ptr<const float>(memory, memory->data()), {3});
    memory.reset();
    EXPECT_EQ(x.values().data(), address);
    EXPECT_EQ(Reshape(x, {3, 1}).values().data(), address);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(OperationsTest, AMovedTensorIsZero) {
  Tensor x = Ones({3});
  const Tensor y = std::move(x);
  EXPECT_EQ(y.size(), 3);
  EXPECT_EQ(x.scalar(), 0);  // NOLINT
}

}  // namespace
}  // namespace parasol
