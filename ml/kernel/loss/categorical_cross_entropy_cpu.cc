#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/loss/categorical_cross_entropy.h"
#include "ml/kernel/loss/lane_sum.h"
#include "ml/kernel/vector_math.h"

// All of this is inlined into the two functions that are compiled for several
// machines.
#define PARASOL_ROW [[gnu::always_inline]] inline

namespace parasol::cpu {
namespace {

// One example. Its logits less the largest one are z.
struct Row {
  const float* logits;
  int64_t columns;
  float largest;
  float exp_sum;

  PARASOL_ROW float z(int64_t i) const { return logits[i] - largest; }
};

PARASOL_ROW float Largest(const float* values, int64_t size) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = values[0];
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
#if !defined(__clang__)
#pragma GCC unroll 1
#endif
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  float largest = lanes[0];
  for (; i < size; ++i) largest = values[i] > largest ? values[i] : largest;
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// The exponentials stay in `exps`, where the gradient will be, or are summed
// only.
PARASOL_ROW Row MakeRow(const float* logits, int64_t columns, float* exps) {
  Row row{logits, columns, Largest(logits, columns), 0};
  if (exps == nullptr) {
    row.exp_sum = LaneSum(
        columns, [row](int64_t i) { return vector_math::Exp(row.z(i)); });
    return row;
  }
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < columns; ++i) exps[i] = vector_math::Exp(row.z(i));
  row.exp_sum = LaneSum(columns, [exps](int64_t i) { return exps[i]; });
  return row;
}

struct DenseLabels {
  // As for one row of the batch.
  PARASOL_ROW DenseLabels(const float* labels, int64_t row, int64_t columns,
                          float smoothing)
      : labels_(labels + row * columns),
        share_(1 - smoothing),
        floor_(smoothing / columns) {}

  PARASOL_ROW float Loss(const Row& row) const {
    const float log_sum = std::log(row.exp_sum);
    return LaneSum(row.columns, [this, &row, log_sum](int64_t i) {
      return y(i) * (log_sum - row.z(i));
    });
  }
  // exps to gradient, in place.
  PARASOL_ROW void Gradient(const Row& row, float scale, float* exps) const {
    const float sum = LaneSum(row.columns, [this](int64_t i) { return y(i); });
    const float probability = scale * sum / row.exp_sum;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < row.columns; ++i) {
      exps[i] = exps[i] * probability - scale * y(i);
    }
  }

 private:
  PARASOL_ROW float y(int64_t i) const { return labels_[i] * share_ + floor_; }

  const float* labels_;
  float share_;
  float floor_;
};

struct SparseLabels {
  PARASOL_ROW SparseLabels(const float* labels, int64_t row, int64_t columns,
                           float smoothing)
      : label_(static_cast<int64_t>(labels[row])),
        share_(1 - smoothing),
        floor_(smoothing / columns) {}

  PARASOL_ROW float Loss(const Row& row) const {
    const float loss = std::log(row.exp_sum) - share_ * row.z(label_);
    if (floor_ == 0) return loss;
    return loss - floor_ * LaneSum(row.columns,
                                   [&row](int64_t i) { return row.z(i); });
  }
  PARASOL_ROW void Gradient(const Row& row, float scale, float* exps) const {
    const float probability = scale / row.exp_sum;
    const float floor = scale * floor_;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < row.columns; ++i) {
      exps[i] = exps[i] * probability - floor;
    }
    exps[label_] -= scale * share_;
  }

 private:
  int64_t label_;
  float share_;
  float floor_;
};

template <typename Labels>
PARASOL_ROW void ComputeRows(const LossBatch& batch, float smoothing,
                             const LossResult& out) {
  const int64_t rows = batch.outputs.rows;
  const int64_t columns = batch.outputs.columns;
  for (int64_t i = 0; i < rows; ++i) {
    const float weight = batch.weights == nullptr ? 1 : batch.weights[i];
    float* const gradient =
        out.gradient == nullptr ? nullptr : out.gradient + i * columns;
    const Row row =
        MakeRow(batch.outputs.data + i * columns, columns, gradient);
    const Labels labels(batch.labels, i, columns, smoothing);
    out.losses[i] = weight * labels.Loss(row);
    if (gradient != nullptr) labels.Gradient(row, weight / rows, gradient);
  }
}

PARASOL_MULTIVERSION void ComputeDense(const LossBatch& batch, float smoothing,
                                       const LossResult& out) {
  ComputeRows<DenseLabels>(batch, smoothing, out);
}

PARASOL_MULTIVERSION void ComputeSparse(const LossBatch& batch, float smoothing,
                                        const LossResult& out) {
  ComputeRows<SparseLabels>(batch, smoothing, out);
}

}  // namespace

absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out) {
  ComputeDense(batch, smoothing, out);
  return absl::OkStatus();
}

absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out) {
  ComputeSparse(batch, smoothing, out);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
