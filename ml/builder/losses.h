#ifndef PARASOL_ML_BUILDER_LOSSES_H_
#define PARASOL_ML_BUILDER_LOSSES_H_

#include <string>

#include "proto/job.pb.h"

// Losses for ModelBuilder::SetLoss().
namespace parasol {

inline job::Loss SparseCategoricalCrossentropy(double label_smoothing = 0) {
  job::Loss loss;
  job::CrossEntropy& entropy = *loss.mutable_sparse_categorical_crossentropy();
  if (label_smoothing != 0) entropy.set_label_smoothing(label_smoothing);
  return loss;
}

inline job::Loss CategoricalCrossentropy(double label_smoothing = 0) {
  job::Loss loss;
  job::CrossEntropy& entropy = *loss.mutable_categorical_crossentropy();
  if (label_smoothing != 0) entropy.set_label_smoothing(label_smoothing);
  return loss;
}

inline job::Loss BinaryCrossentropy(double label_smoothing = 0) {
  job::Loss loss;
  job::CrossEntropy& entropy = *loss.mutable_binary_crossentropy();
  if (label_smoothing != 0) entropy.set_label_smoothing(label_smoothing);
  return loss;
}

// Takes outputs that are probabilities, not logits.
inline job::Loss BinaryCrossentropyOfProbabilities() {
  job::Loss loss;
  loss.mutable_binary_crossentropy()->set_from_logits(false);
  return loss;
}

inline job::Loss MeanSquaredError() {
  job::Loss loss;
  loss.mutable_mean_squared_error();
  return loss;
}

inline job::Loss MeanAbsoluteError() {
  job::Loss loss;
  loss.mutable_mean_absolute_error();
  return loss;
}

inline job::Loss Huber(double delta = 1) {
  job::Loss loss;
  loss.mutable_huber();
  if (delta != 1) loss.mutable_huber()->set_delta(delta);
  return loss;
}

inline job::Loss Hinge() {
  job::Loss loss;
  loss.mutable_hinge();
  return loss;
}

inline job::Loss Poisson() {
  job::Loss loss;
  loss.mutable_poisson();
  return loss;
}

inline job::Loss BinaryFocalCrossentropy(double gamma = 2) {
  job::Loss loss;
  loss.mutable_binary_focal_crossentropy();
  if (gamma != 2) loss.mutable_binary_focal_crossentropy()->set_gamma(gamma);
  return loss;
}

// BPR over the pairs of a batch; `group`: a column, or empty for none.
inline job::Loss PairwiseLogistic(const std::string& group = "") {
  job::Loss loss;
  job::PairwiseLogistic& pairwise = *loss.mutable_pairwise_logistic();
  if (!group.empty()) pairwise.set_group(group);
  return loss;
}

// The loss of two towers; the columns may be empty for none.
struct InBatchSoftmaxOptions {
  double temperature = 1;
  std::string candidate = {};
  std::string candidate_probability = {};
};
inline job::Loss InBatchSoftmax(const InBatchSoftmaxOptions& options = {}) {
  job::Loss loss;
  job::InBatchSoftmax& softmax = *loss.mutable_in_batch_softmax();
  if (options.temperature != 1) softmax.set_temperature(options.temperature);
  if (!options.candidate.empty()) softmax.set_candidate(options.candidate);
  if (!options.candidate_probability.empty()) {
    softmax.set_candidate_probability(options.candidate_probability);
  }
  return loss;
}

}  // namespace parasol

#endif  // PARASOL_ML_BUILDER_LOSSES_H_
