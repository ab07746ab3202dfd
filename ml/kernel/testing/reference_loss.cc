#include "ml/kernel/testing/reference_loss.h"

#include <algorithm>
#include <cmath>

namespace parasol::reference {
namespace {

double WeightOf(const std::vector<double>& weights, int64_t row) {
  return weights.empty() ? 1 : weights[row];
}

double LogOfExpSum(const Matrix& logits, int64_t row) {
  double largest = logits.at(row, 0);
  for (int64_t j = 1; j < logits.columns; ++j) {
    largest = std::max(largest, logits.at(row, j));
  }
  double sum = 0;
  for (int64_t j = 0; j < logits.columns; ++j) {
    sum += std::exp(logits.at(row, j) - largest);
  }
  return largest + std::log(sum);
}

// log(1 + e^z)
double Softplus(double z) {
  return std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z)));
}

}  // namespace

std::vector<double> MeanSquaredError(const Matrix& outputs,
                                     const std::vector<double>& labels,
                                     const std::vector<double>& weights) {
  std::vector<double> losses;
  for (int64_t i = 0; i < outputs.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < outputs.columns; ++j) {
      sum += std::pow(outputs.at(i, j) - labels[i * outputs.columns + j], 2);
    }
    losses.push_back(WeightOf(weights, i) * sum / outputs.columns);
  }
  return losses;
}

std::vector<double> BinaryCrossEntropy(const Matrix& logits,
                                       const std::vector<double>& labels,
                                       double smoothing,
                                       const std::vector<double>& weights) {
  std::vector<double> losses;
  for (int64_t i = 0; i < logits.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < logits.columns; ++j) {
      const double y =
          labels[i * logits.columns + j] * (1 - smoothing) + smoothing / 2;
      // -log(sigmoid(z)) is softplus(-z).
      sum +=
          y * Softplus(-logits.at(i, j)) + (1 - y) * Softplus(logits.at(i, j));
    }
    losses.push_back(WeightOf(weights, i) * sum / logits.columns);
  }
  return losses;
}

std::vector<double> CategoricalCrossEntropy(
    const Matrix& logits, const std::vector<double>& labels, double smoothing,
    const std::vector<double>& weights) {
  std::vector<double> losses;
  for (int64_t i = 0; i < logits.rows; ++i) {
    const double log_sum = LogOfExpSum(logits, i);
    double sum = 0;
    for (int64_t j = 0; j < logits.columns; ++j) {
      const double y = labels[i * logits.columns + j] * (1 - smoothing) +
                       smoothing / logits.columns;
      sum += y * (log_sum - logits.at(i, j));
    }
    losses.push_back(WeightOf(weights, i) * sum);
  }
  return losses;
}

std::vector<double> SparseCategoricalCrossEntropy(
    const Matrix& logits, const std::vector<double>& labels, double smoothing,
    const std::vector<double>& weights) {
  std::vector<double> one_hot(logits.rows * logits.columns);
  for (int64_t i = 0; i < logits.rows; ++i) {
    one_hot[i * logits.columns + static_cast<int64_t>(labels[i])] = 1;
  }
  return CategoricalCrossEntropy(logits, one_hot, smoothing, weights);
}

}  // namespace parasol::reference
