#ifndef PARASOL_ML_TAPE_LOSSES_H_
#define PARASOL_ML_TAPE_LOSSES_H_

#include "ml/tape/tensor.h"

// Losses of each example: of labels and outputs [examples, outputs], the mean
// over the outputs, [examples]; in general over the innermost axis. The numbers
// are those that a job has with its losses. They are computed by operations, so
// that gradients of gradients exist.
//
// Labels have the shape of the outputs, float32 or int64. An innermost axis of
// size 1 may be missing in one of both.
//   InvalidArgument  (as the result's status) the shapes differ otherwise.
namespace parasol {

struct CrossentropyOptions {
  // False: the outputs are probabilities.
  bool from_logits = true;
  // Labels y become y · (1 - s) + s / classes, with two classes for binary.
  float label_smoothing = 0;
};

Tensor BinaryCrossentropy(const Tensor& labels, const Tensor& outputs,
                          const CrossentropyOptions& options = {});
// Takes a share of 1 for each class.
Tensor CategoricalCrossentropy(const Tensor& labels, const Tensor& outputs,
                               const CrossentropyOptions& options = {});
// Takes class numbers: one for each row of the outputs.
//   InvalidArgument  (as the result's status) a label is not a class's number.
Tensor SparseCategoricalCrossentropy(const Tensor& labels,
                                     const Tensor& outputs,
                                     const CrossentropyOptions& options = {});

Tensor MeanSquaredError(const Tensor& labels, const Tensor& outputs);
Tensor MeanAbsoluteError(const Tensor& labels, const Tensor& outputs);
// Takes e² / 2 for errors up to `delta`, delta · (|e| - delta / 2) beyond.
Tensor Huber(const Tensor& labels, const Tensor& outputs, float delta = 1);
// Takes max(0, 1 - (2y - 1) · z), for labels 0 and 1.
Tensor Hinge(const Tensor& labels, const Tensor& outputs);
// Takes z - y · log(z + 1e-7), of a rate z.
Tensor Poisson(const Tensor& labels, const Tensor& outputs);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_LOSSES_H_
