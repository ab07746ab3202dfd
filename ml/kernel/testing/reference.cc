#include "ml/kernel/testing/reference.h"

#include <cmath>
#include <utility>

namespace parasol::reference {

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < a.columns; ++k) {
        c.at(i, j) += a.at(i, k) * b.at(k, j);
      }
    }
  }
  return c;
}

Matrix Transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  }
  return t;
}

Matrix Affine(const Matrix& x, const Matrix& w,
              const std::vector<double>& bias) {
  Matrix y = Product(x, w);
  if (bias.empty()) return y;
  for (int64_t i = 0; i < y.rows; ++i) {
    for (int64_t j = 0; j < y.columns; ++j) y.at(i, j) += bias[j];
  }
  return y;
}

std::vector<double> SumOfRows(const Matrix& a) {
  std::vector<double> sum(a.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) sum[j] += a.at(i, j);
  }
  return sum;
}

Matrix Relu(const Matrix& x) {
  Matrix y = x;
  for (double& value : y.values) value = value < 0 ? 0 : value;
  return y;
}

Matrix ReluGradient(const Matrix& y, const Matrix& dy) {
  Matrix dx = dy;
  for (size_t i = 0; i < y.values.size(); ++i) {
    if (!(y.values[i] > 0)) dx.values[i] = 0;
  }
  return dx;
}

CrossEntropy SoftmaxCrossEntropy(const Matrix& logits,
                                 const std::vector<int32_t>& labels) {
  CrossEntropy out = {{}, {}, Matrix(logits.rows, logits.columns)};
  for (int64_t i = 0; i < logits.rows; ++i) {
    int64_t largest = 0;
    for (int64_t j = 1; j < logits.columns; ++j) {
      if (logits.at(i, j) > logits.at(i, largest)) largest = j;
    }
    double sum = 0;
    for (int64_t j = 0; j < logits.columns; ++j) {
      sum += std::exp(logits.at(i, j) - logits.at(i, largest));
    }
    const auto log_probability = [&](int64_t j) {
      return logits.at(i, j) - logits.at(i, largest) - std::log(sum);
    };
    out.loss.push_back(-log_probability(labels[i]));
    out.correct.push_back(largest == labels[i]);
    for (int64_t j = 0; j < logits.columns; ++j) {
      const double target = j == labels[i] ? 1 : 0;
      out.gradient.at(i, j) =
          (std::exp(log_probability(j)) - target) / logits.rows;
    }
  }
  return out;
}

}  // namespace parasol::reference
