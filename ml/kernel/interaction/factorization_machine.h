#ifndef PARASOL_ML_KERNEL_INTERACTION_FACTORIZATION_MACHINE_H_
#define PARASOL_ML_KERNEL_INTERACTION_FACTORIZATION_MACHINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// The shape of `examples` matrices x [fields, width], which lie one after
// another.
struct Interaction {
  int64_t examples = 0;
  int64_t fields = 0;
  int64_t width = 0;
};

// Both functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.

// Computes y[example] = ½ Σ_k ((Σ_f x[f, k])² - Σ_f x[f, k]²), which is the sum
// of x[f] · x[g] over all pairs f < g (Rendle, "Factorization Machines", 2010).
absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y);

// Computes dx[f, k] = dy[example] · (Σ_g x[g, k] - x[f, k]).
absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y);
absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx);
}  // namespace cpu

namespace cuda {
absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y);
absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_INTERACTION_FACTORIZATION_MACHINE_H_
