#include "ml/layer/sequence/sines.h"

#include <cmath>

namespace parasol {

void WriteSines(int64_t steps, int64_t width, double max_wavelength,
                absl::Span<float> vectors) {
  for (int64_t i = 0; i < width; ++i) {
    const double power = static_cast<double>(i / 2 * 2) / width;
    const double frequency = std::pow(max_wavelength, -power);
    for (int64_t step = 0; step < steps; ++step) {
      const double angle = step * frequency;
      vectors[step * width + i] =
          static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
}

}  // namespace parasol
