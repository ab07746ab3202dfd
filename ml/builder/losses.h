#ifndef PARASOL_ML_BUILDER_LOSSES_H_
#define PARASOL_ML_BUILDER_LOSSES_H_

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

inline job::Loss MeanSquaredError() {
  job::Loss loss;
  loss.mutable_mean_squared_error();
  return loss;
}

}  // namespace parasol

#endif  // PARASOL_ML_BUILDER_LOSSES_H_
