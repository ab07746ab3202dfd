#ifndef PARASOL_ML_INPUT_FORMAT_IMAGE_TRANSFORM_H_
#define PARASOL_ML_INPUT_FORMAT_IMAGE_TRANSFORM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace parasol {

struct ImageShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;

  int64_t pixels() const { return height * width * channels; }
};

// Makes float32 images [height, width, channels] from bytes. Thread-safe.
class ImageReader {
 public:
  // Returns a reader of images of `shape`.
  //   InvalidArgument  mean or stddev does not have 0, 1 or one number for each
  //                    channel, a stddev is not above 0, or the padding is not
  //                    in 0 to 1024.
  static absl::StatusOr<ImageReader> Create(
      const ImageShape& shape, const job::ImageTransform& transform);

  // Appends an image whose bytes are [channels, height, width]. The window that
  // is cut out, and whether it is flipped, depend on `random` alone.
  void Append(const uint8_t* bytes, uint64_t random,
              std::vector<float>& values) const;

 private:
  struct Window {
    int64_t top;
    int64_t left;
    bool flipped;
  };

  ImageReader(const ImageShape& shape, const job::ImageTransform& transform)
      : shape_(shape),
        padding_(transform.random_crop_padding()),
        flips_(transform.random_flip()) {}

  Window Draw(uint64_t random) const;
  // Writes one channel of one line of the result from the image's `line`; null
  // if the window lies above or below the image.
  void WriteLine(const uint8_t* line, int64_t channel, const Window& window,
                 float* out) const;

  ImageShape shape_;
  int64_t padding_;
  bool flips_;
  std::vector<float> value_of_;  // [channels, 256]: each byte, transformed
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IMAGE_TRANSFORM_H_
