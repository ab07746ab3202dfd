// Models whose layers are not a mere chain.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using reference::Matrix;
using ::testing::FloatNear;
using ::testing::Pointwise;

class GraphModelTest : public ModelTestBase {
 protected:
  // RandomValues() of `model`, in double, as matrices.
  static std::vector<Matrix> Matrices(const Model& model) {
    std::vector<Matrix> values;
    for (size_t i = 0; i < model.variables().size(); ++i) {
      const std::vector<int64_t>& shape = model.variables()[i].shape;
      Matrix value(shape.size() == 2 ? shape[0] : 1, shape.back());
      value.values = RandomMatrix(1, value.values.size(), i + 1).values;
      values.push_back(value);
    }
    return values;
  }

  // Checks that the model's gradients are the derivatives of `loss`, the
  // batch's mean.
  static void CheckGradients(
      Model& model, const Batch& batch,
      const std::function<double(const std::vector<Matrix>&)>& loss) {
    SetAll(model, RandomValues(model));
    const Values gradients = GradientsOf(model, batch);
    std::vector<Matrix> values = Matrices(model);
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < values.size(); ++i) {
      SCOPED_TRACE(model.variables()[i].name);
      std::vector<float> differences;
      for (double& value : values[i].values) {
        const double center = value;
        value = center + kStep;
        const double above = loss(values);
        value = center - kStep;
        const double below = loss(values);
        value = center;
        differences.push_back((above - below) / (2 * kStep));
      }
      // Single precision, of sums of few values below 10.
      EXPECT_THAT(gradients[i], Pointwise(FloatNear(5e-6), differences));
    }
  }

  static Matrix InputOf(const Batch& batch) {
    const DenseFeature& input = batch.dense[0];
    Matrix x(batch.size, input.values.size() / batch.size);
    x.values.assign(input.values.begin(), input.values.end());
    return x;
  }
  static double MeanLoss(const Matrix& logits, const Batch& batch) {
    const std::vector<int32_t> labels(batch.labels.begin(), batch.labels.end());
    double sum = 0;
    for (double loss : reference::SoftmaxCrossEntropy(logits, labels).loss) {
      sum += loss;
    }
    return sum / batch.size;
  }
};

// Dense layer `i` of a model that has no other layers with variables.
Matrix Dense(const std::vector<Matrix>& values, size_t i, const Matrix& x) {
  return reference::Affine(x, values[2 * i], values[2 * i + 1].values);
}

Matrix Sum(const Matrix& a, const Matrix& b) {
  Matrix sum = a;
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

TEST_P(GraphModelTest, GradientsThatMeetAreAddedUp) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: 6 layer { name: 'a' dense { units: 5 activation: RELU } }"
      "layer { dense { units: 5 activation: RELU } }"
      "layer { name: 'c' dense { units: 5 } }"
      "layer { add {} input: ['c', 'a'] } layer { name: 's' activation: RELU }"
      "layer { name: 'd' dense { units: 5 activation: RELU } input: 'a' }"
      "layer { add {} input: ['s', 'd'] } layer { dense { units: 4 } }");
  const Batch batch = RandomBatch(7, {6}, 4);
  CheckGradients(*model, batch, [&](const std::vector<Matrix>& values) {
    using reference::Relu;
    const Matrix a = Relu(Dense(values, 0, InputOf(batch)));
    const Matrix c = Dense(values, 2, Relu(Dense(values, 1, a)));
    const Matrix d = Relu(Dense(values, 3, a));
    const Matrix sum = Sum(Relu(Sum(c, a)), d);
    return MeanLoss(Dense(values, 4, sum), batch);
  });
}

TEST_P(GraphModelTest, ALayerMayReadOneThingTwiceAndTheInputAgain) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: 5 layer { name: 'a' dense { units: 5 } }"
      "layer { name: 'twice' add {} input: ['a', 'a', 'input'] }"
      "layer { dense { units: 3 } }");
  const Batch batch = RandomBatch(4, {5}, 3);
  CheckGradients(*model, batch, [&](const std::vector<Matrix>& values) {
    const Matrix x = InputOf(batch);
    const Matrix a = Dense(values, 0, x);
    return MeanLoss(Dense(values, 1, Sum(Sum(a, a), x)), batch);
  });
}

TEST_P(GraphModelTest, TwoInputsMeet) {
  job::Model spec = Classifier(
      "input { name: 'x' dense { shape: 3 } }"
      "input { name: 'image' dense { shape: [2, 2] } }"
      "layer { name: 'a' dense { units: 5 activation: RELU } input: 'x' }"
      "layer { flatten {} input: 'image' }"
      "layer { name: 'b' dense { units: 5 activation: RELU } }"
      "layer { add {} input: ['a', 'b'] } layer { dense { units: 3 } }");
  const std::unique_ptr<Model> model = Make(spec);
  Batch batch = RandomBatch(4, {3}, 3);
  batch.dense.push_back(RandomBatch(4, {2, 2}, 3).dense[0]);
  CheckGradients(*model, batch, [&](const std::vector<Matrix>& values) {
    Matrix image(4, 4);
    image.values.assign(batch.dense[1].values.begin(),
                        batch.dense[1].values.end());
    const Matrix a = reference::Relu(Dense(values, 0, InputOf(batch)));
    const Matrix b = reference::Relu(Dense(values, 1, image));
    return MeanLoss(Dense(values, 2, Sum(a, b)), batch);
  });
}

TEST_P(GraphModelTest, L2IsPartOfTheLossAndOfItsGradient) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: 6 layer { dense { units: 5 activation: RELU kernel_l2: .1 "
      "} } layer { dense { units: 4 bias_l2: .25 } }");
  const Batch batch = RandomBatch(7, {6}, 4);
  const auto loss = [&](const std::vector<Matrix>& values) {
    const Matrix a = reference::Relu(Dense(values, 0, InputOf(batch)));
    double l2 = 0;
    for (double w : values[0].values) l2 += .1 * w * w;
    for (double w : values[3].values) l2 += .25 * w * w;
    return MeanLoss(Dense(values, 1, a), batch) + l2;
  };
  CheckGradients(*model, batch, loss);
  const double want = loss(Matrices(*model));
  ASSERT_OK_AND_ASSIGN(const Evaluated result, Evaluate(*model, batch));
  EXPECT_NEAR(result.loss_sum / 7, want, 1e-5);
  ASSERT_OK_AND_ASSIGN(const BatchResult trained,
                       Train(*model, batch, IgnoreVariable));
  EXPECT_NEAR(trained.loss_sum / 7, want, 1e-5);
}

TEST_P(GraphModelTest, AnExamplesLossIsMultipliedByItsWeight) {
  const std::unique_ptr<Model> model =
      Make("input_shape: 6 layer { dense { units: 4 } }");
  Batch batch = RandomBatch(2, {6}, 4);
  SetAll(*model, RandomValues(*model));
  ASSERT_OK_AND_ASSIGN(const Evaluated both, Evaluate(*model, batch));
  batch.weights = {3, 0};
  ASSERT_OK_AND_ASSIGN(const Evaluated weighted, Evaluate(*model, batch));
  batch.weights = {1, 0};
  ASSERT_OK_AND_ASSIGN(const Evaluated first, Evaluate(*model, batch));
  batch.weights.clear();
  ASSERT_OK_AND_ASSIGN(const Evaluated again, Evaluate(*model, batch));
  EXPECT_NEAR(weighted.loss_sum, 3 * first.loss_sum, 1e-5);
  EXPECT_LT(first.loss_sum, both.loss_sum);
  EXPECT_EQ(again.loss_sum, both.loss_sum);
}

TEST_P(GraphModelTest, BatchesOfManySizesInAnyOrderAreAllTheSame) {
  const std::string layers =
      "input_shape: 6 layer { name: 'a' dense { units: 5 activation: RELU } }"
      "layer { dense { units: 5 } } layer { add {} input: ['dense_1', 'a'] }"
      "layer { dense { units: 4 } }";
  const std::unique_ptr<Model> model = Make(layers);
  SetAll(*model, RandomValues(*model));
  for (const int64_t size : {4, 9, 4, 1, 2, 3, 5, 9, 33, 4, 1}) {
    const Batch batch = RandomBatch(size, {6}, 4);
    const std::unique_ptr<Model> fresh = Make(layers);
    SetAll(*fresh, RandomValues(*fresh));
    EXPECT_EQ(GradientsOf(*model, batch), GradientsOf(*fresh, batch)) << size;
  }
}

TEST_P(GraphModelTest, ABatchMayBeStagedWhileAnotherOneIsThere) {
  const std::unique_ptr<Model> model =
      Make("input_shape: 6 layer { dense { units: 4 } }");
  SetAll(*model, RandomValues(*model));
  const Batch small = RandomBatch(2, {6}, 4);
  const Batch large = RandomBatch(9, {6}, 4);
  ASSERT_OK_AND_ASSIGN(const Evaluated want, Evaluate(*model, small));
  const auto first = model->NewStagedBatch();
  const auto second = model->NewStagedBatch();
  ASSERT_OK(model->Stage(small, *first));
  ASSERT_OK(model->Stage(large, *second));
  ASSERT_OK_AND_ASSIGN(const EvaluatedBatch got, model->Evaluate(*first));
  EXPECT_EQ(got.result.loss_sum, want.loss_sum);
  ASSERT_OK_AND_ASSIGN(const EvaluatedBatch other, model->Evaluate(*second));
  EXPECT_EQ(other.result.examples, 9);
}

// With a batch of one example, a kernel's gradient is 0 exactly where its input
// is.
TEST_P(GraphModelTest, TwoDropoutsOfAModelDropDifferentElements) {
  constexpr int kWidth = 64;
  const std::unique_ptr<Model> model = Make(
      "input { name: 'x' dense { shape: 64 } }"
      "layer { name: 'a' input: 'x' dropout { rate: 0.5 } }"
      "layer { name: 'b' input: 'x' dropout { rate: 0.5 } }"
      "layer { input: ['a', 'b'] concatenate {} }"
      "layer { dense { units: 2 use_bias: false } }");
  SetAll(*model, RandomValues(*model));
  Batch batch = RandomBatch(1, {kWidth}, 2);
  batch.dense[0].values.assign(kWidth, 1);
  const std::vector<float> gradient = GradientsOf(*model, batch)[0];
  std::vector<bool> dropped;
  for (int i = 0; i < 2 * kWidth; ++i) {
    dropped.push_back(gradient[2 * i] == 0);
  }
  const std::vector<bool> first(dropped.begin(), dropped.begin() + kWidth);
  const std::vector<bool> second(dropped.begin() + kWidth, dropped.end());
  EXPECT_THAT(first, testing::Contains(true));
  EXPECT_THAT(first, testing::Contains(false));
  EXPECT_NE(first, second);
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphModelTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
