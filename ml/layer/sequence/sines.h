#ifndef PARASOL_ML_LAYER_SEQUENCE_SINES_H_
#define PARASOL_ML_LAYER_SEQUENCE_SINES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace parasol {

// Writes the vectors [steps, width] of a sinusoidal positional embedding:
// column i of a step is the sine, for even i, or the cosine, for odd i, of step
// · max_wavelength^-(2 ⌊i / 2⌋ / width).
void WriteSines(int64_t steps, int64_t width, double max_wavelength,
                absl::Span<float> vectors);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_SINES_H_
