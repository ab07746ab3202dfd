#ifndef PARASOL_ML_KERNEL_TESTING_LOSS_FIXTURE_H_
#define PARASOL_ML_KERNEL_TESTING_LOSS_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/loss/loss_batch.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {

// A test that compares a loss's kernel with its reference.
class LossKernelTest : public DeviceTest {
 protected:
  struct Problem {
    reference::Matrix outputs;
    std::vector<double> labels;
    std::vector<double> weights = {};
  };
  struct Result {
    std::vector<float> losses;
    std::vector<float> gradient;
  };
  // A function that returns the loss of each example in float64.
  using Reference = std::function<std::vector<double>(
      const reference::Matrix& outputs, const std::vector<double>& labels,
      const std::vector<double>& weights)>;
  using Kernel =
      std::function<absl::Status(const LossBatch&, const LossResult&)>;

  static std::vector<float> Floats(const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  }
  static reference::Matrix MatrixOf(int64_t rows, int64_t columns,
                                    const std::vector<double>& values) {
    reference::Matrix matrix(rows, columns);
    matrix.values = values;
    return matrix;
  }
  // A problem with random weights and with logits in [-8, 8), but without
  // labels.
  static Problem RandomProblem(int64_t rows, int64_t columns) {
    Problem problem{RandomMatrix(rows, columns, 1), {}, {}};
    for (double& value : problem.outputs.values) value *= 8;
    for (const double value : RandomMatrix(rows, 1, 2).values) {
      problem.weights.push_back(1 + value);
    }
    return problem;
  }

  LossBatch PutBatch(const Problem& problem) {
    return {Put(problem.outputs), Put(Floats(problem.labels)),
            problem.weights.empty() ? nullptr : Put(Floats(problem.weights))};
  }

  Result Run(const Kernel& kernel, const Problem& problem) {
    const reference::Matrix& outputs = problem.outputs;
    const LossResult out = {
        .losses = Put(std::vector<float>(outputs.rows)),
        .gradient = Put(std::vector<float>(outputs.values.size()))};
    EXPECT_OK(kernel(PutBatch(problem), out));
    return {Get(out.losses, outputs.rows),
            Get(out.gradient, outputs.values.size())};
  }
  std::vector<float> LossesAlone(const Kernel& kernel, const Problem& problem) {
    const int64_t rows = problem.outputs.rows;
    const LossResult out = {.losses = Put(std::vector<float>(rows))};
    EXPECT_OK(kernel(PutBatch(problem), out));
    return Get(out.losses, rows);
  }

  // Returns the problem's row `i` alone.
  static Problem RowOf(const Problem& problem, int64_t i) {
    const int64_t columns = problem.outputs.columns;
    const int64_t labels = problem.labels.size() / problem.outputs.rows;
    const auto slice = [](const std::vector<double>& values, int64_t first,
                          int64_t count) {
      const auto begin = values.begin() + first;
      return std::vector<double>(begin, begin + count);
    };
    Problem row = {
        MatrixOf(1, columns,
                 slice(problem.outputs.values, i * columns, columns)),
        slice(problem.labels, i * labels, labels)};
    if (!problem.weights.empty()) row.weights = {problem.weights[i]};
    return row;
  }

  // Returns the gradient of the mean of `reference` by each output, as central
  // differences. No row's loss may depend on another row.
  static std::vector<double> Differences(const Reference& reference,
                                         const Problem& problem) {
    constexpr double kStep = 1e-5;
    std::vector<double> differences;
    for (int64_t i = 0; i < problem.outputs.rows; ++i) {
      Problem row = RowOf(problem, i);
      const auto loss = [&] {
        return reference(row.outputs, row.labels, row.weights)[0] /
               problem.outputs.rows;
      };
      for (double& output : row.outputs.values) {
        const double value = output;
        output = value + kStep;
        const double above = loss();
        output = value - kStep;
        differences.push_back((above - loss()) / (2 * kStep));
        output = value;
      }
    }
    return differences;
  }

  // Expects that losses and gradient agree with the reference to 1e-5, of the
  // loss and of the largest element of the gradient: the device's exp and log
  // are good to a few units of 2^-24, and sums are float32. The term 1e-8 is
  // for gradients of 0, since the differences round terms of up to 1 / rows.
  void ExpectIsReference(const Kernel& kernel, const Reference& reference,
                         const Problem& problem) {
    const std::vector<double> want =
        reference(problem.outputs, problem.labels, problem.weights);
    const Result result = Run(kernel, problem);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(result.losses[i], want[i], 1e-5 * (1 + std::fabs(want[i])))
          << i;
    }
    EXPECT_THAT(
        LossesAlone(kernel, problem),
        ::testing::Pointwise(::testing::FloatNear(1e-4), result.losses));
    if (problem.outputs.values.size() > 4096) return;
    const std::vector<double> gradient = Differences(reference, problem);
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::fabs(g));
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(result.gradient[i], gradient[i], 1e-5 * largest + 1e-8) << i;
    }
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_TESTING_LOSS_FIXTURE_H_
