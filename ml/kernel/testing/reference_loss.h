#ifndef PARASOL_ML_KERNEL_TESTING_REFERENCE_LOSS_H_
#define PARASOL_ML_KERNEL_TESTING_REFERENCE_LOSS_H_

#include <vector>

#include "ml/kernel/testing/reference.h"

// The losses as plain loops in double precision, without their gradients: those
// are the differences of these.
namespace parasol::reference {

// Of each row; `labels` as many as outputs, or class numbers; `weights` may be
// empty.
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
