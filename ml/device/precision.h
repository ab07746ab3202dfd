#ifndef PARASOL_ML_DEVICE_PRECISION_H_
#define PARASOL_ML_DEVICE_PRECISION_H_

namespace parasol {

// Precision of the factors of matrix products and convolutions on a CUDA
// device. Products are added up in float32, and everything else is computed in
// float32 throughout. A CPU always computes in float32.
enum class Precision {
  kFloat32,
  // A mantissa of 10 bits, on tensor cores.
  kTf32,
  // bfloat16 (7 bits of mantissa), rounded to nearest, ties to even. So are the
  // arrays between layers of images (ml/model/plan.h).
  kBfloat16,
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_PRECISION_H_
