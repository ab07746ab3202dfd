#ifndef PARASOL_ML_ZOO_NORMALIZED_CONVOLUTION_H_
#define PARASOL_ML_ZOO_NORMALIZED_CONVOLUTION_H_

#include <cstdint>
#include <string>

#include "ml/builder/model_builder.h"
#include "proto/job.pb.h"

namespace parasol::zoo {

// A convolution of a residual network.
struct NormalizedConvolutionOptions {
  std::string name;
  int64_t filters = 0;
  int64_t window = 1;
  int64_t stride = 1;
  double l2 = 0;  // factor of the kernel's penalty
  double momentum = 0;
  job::Initializer gamma = {};
};

// Returns the batch normalization, "<name>/norm", of a convolution without a
// bias, "<name>/conv".
Value NormalizedConvolution(const Value& x,
                            const NormalizedConvolutionOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_NORMALIZED_CONVOLUTION_H_
