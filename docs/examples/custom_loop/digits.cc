#include "docs/examples/custom_loop/digits.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "deploy/local/drawn_digits.h"

namespace parasol {
namespace {

Digits Draw(int64_t count, uint64_t seed) {
  const LabelledImages drawn = DrawDigits(count, seed);
  std::vector<float> pixels;
  pixels.reserve(drawn.images.pixels.size());
  for (const uint8_t pixel : drawn.images.pixels) {
    pixels.push_back(static_cast<float>(pixel) / 255);
  }
  const std::vector<int64_t> labels(drawn.labels.begin(), drawn.labels.end());
  return {.images = Tensor::Of(pixels, {count, 28, 28, 1}),
          .labels = Tensor::Ints(labels, {count})};
}

}  // namespace

absl::StatusOr<Digits> LoadDigits(const std::string& directory,
                                  const std::string& set, int64_t count,
                                  uint64_t seed) {
  if (directory.empty()) return Draw(count, seed);
  ASSIGN_OR_RETURN(
      const loop::Dataset files,
      loop::FromFiles({.dataset = absl::Substitute(
                           "idx { images: '$0-images-idx3-ubyte.gz' labels: "
                           "'$0-labels-idx1-ubyte.gz' } batch_size: $1",
                           set, count),
                       .inputs = "input_shape: [28, 28, 1]",
                       .data_dir = directory}));
  ASSIGN_OR_RETURN(const std::unique_ptr<loop::Stream> stream, files.Open());
  ASSIGN_OR_RETURN(const std::optional<loop::Batch> all, stream->Next());
  return Digits{.images = (*all)[0], .labels = (*all)[1]};
}

void PrintDigits(const Tensor& images) {
  const int64_t width = 28 * images.shape()[0];
  for (int64_t row = 0; row < 28; row += 2) {
    for (int64_t column = 0; column < width; ++column) {
      const int64_t at = (column / 28 * 28 + row) * 28 + column % 28;
      const float pixel = images.values()[at];
      std::putchar(" .:-=+*#%@"[static_cast<int>(9.99f * pixel)]);
    }
    std::putchar('\n');
  }
}

}  // namespace parasol
