#ifndef PARASOL_ML_KERNEL_TESTING_REFERENCE_LOSS_H_
#define PARASOL_ML_KERNEL_TESTING_REFERENCE_LOSS_H_

#include <vector>

#include "ml/kernel/testing/reference.h"

// The losses as plain loops in double precision. Their gradients are not here:
// tests compute them as differences of the losses.
namespace parasol::reference {

// Each function returns the loss of each row. `labels` has as many elements as
// `outputs`, or one class number for each row; `weights` may be empty.
std::vector<double> MeanSquaredError(const Matrix& outputs,
                                     const std::vector<double>& labels,
                                     const std::vector<double>& weights);
std::vector<double> BinaryCrossEntropy(const Matrix& logits,
                                       const std::vector<double>& labels,
                                       double smoothing,
                                       const std::vector<double>& weights);
std::vector<double> CategoricalCrossEntropy(const Matrix& logits,
                                            const std::vector<double>& labels,
                                            double smoothing,
                                            const std::vector<double>& weights);
std::vector<double> SparseCategoricalCrossEntropy(
    const Matrix& logits, const std::vector<double>& labels, double smoothing,
    const std::vector<double>& weights);

}  // namespace parasol::reference

#endif  // PARASOL_ML_KERNEL_TESTING_REFERENCE_LOSS_H_
