#ifndef PARASOL_ML_KERNEL_FACTORIZATION_MACHINE_H_
#define PARASOL_ML_KERNEL_FACTORIZATION_MACHINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Of `examples` matrices x [fields, width], one after another.
struct Interaction {
  int64_t examples = 0;
  int64_t fields = 0;
  int64_t width = 0;
};

// Both enqueue on the compute stream and return; outputs overlap no input.
// Unavailable: the device was lost.

// y[example] = ½ Σ_k ((Σ_f x[f, k])² - Σ_f x[f, k]²), which is the sum of
// x[f] · x[g] over all pairs f < g (Rendle, "Factorization Machines", 2010).
absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y);

// dx[f, k] = dy[example] · (Σ_g x[g, k] - x[f, k]).
absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx);

// What the functions above choose from.
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

#endif  // PARASOL_ML_KERNEL_FACTORIZATION_MACHINE_H_
