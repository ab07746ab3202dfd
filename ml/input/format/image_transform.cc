#include "ml/input/format/image_transform.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr int kBytes = 256;
constexpr int kMaxPadding = 1024;

// Returns one of `choices` numbers from 0, chosen by 16 random bits.
int64_t Choose(int64_t choices, uint64_t sixteen_bits) {
  return static_cast<int64_t>((sixteen_bits & 0xffff) * choices >> 16);
}

float Of(const google::protobuf::RepeatedField<float>& values, int64_t channel,
         float otherwise) {
  if (values.empty()) return otherwise;
  return values.Get(values.size() == 1 ? 0 : static_cast<int>(channel));
}

absl::Status CheckSize(absl::string_view field, int size, int64_t channels) {
  if (size <= 1 || size == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("image.", field, " has ", size,
                                                 " numbers; the images have ",
                                                 channels, " channels"));
}

}  // namespace

absl::StatusOr<ImageReader> ImageReader::Create(
    const ImageShape& shape, const job::ImageTransform& transform) {
  absl::Status sizes = CheckSize("mean", transform.mean_size(), shape.channels);
  sizes.Update(CheckSize("stddev", transform.stddev_size(), shape.channels));
  if (!sizes.ok()) return sizes;
  for (const float stddev : transform.stddev()) {
    if (!(stddev > 0) || !std::isfinite(stddev)) {
      return absl::InvalidArgumentError(
          absl::StrCat("image.stddev ", stddev, " is not above 0"));
    }
  }
  if (transform.random_crop_padding() < 0 ||
      transform.random_crop_padding() > kMaxPadding) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image.random_crop_padding ", transform.random_crop_padding(),
        " is not in 0 to ", kMaxPadding));
  }
  ImageReader reader(shape, transform);
  for (int64_t channel = 0; channel < shape.channels; ++channel) {
    for (int byte = 0; byte < kBytes; ++byte) {
      const float scaled = static_cast<float>(byte) / 255.0f;
      reader.value_of_.push_back((scaled - Of(transform.mean(), channel, 0)) /
                                 Of(transform.stddev(), channel, 1));
    }
  }
  return reader;
}

void ImageReader::Append(const uint8_t* bytes, uint64_t random,
                         std::vector<float>& values) const {
  const Window window = Draw(random);
  const size_t start = values.size();
  values.resize(start + shape_.pixels());
  const int64_t line_values = shape_.width * shape_.channels;
  for (int64_t channel = 0; channel < shape_.channels; ++channel) {
    const uint8_t* plane = bytes + channel * shape_.height * shape_.width;
    float* out = values.data() + start + channel;
    for (int64_t y = 0; y < shape_.height; ++y, out += line_values) {
      const int64_t from_y = y + window.top;
      const bool is_inside = from_y >= 0 && from_y < shape_.height;
      WriteLine(is_inside ? plane + from_y * shape_.width : nullptr, channel,
                window, out);
    }
  }
}

// The pixels [first, last) lie in the image, from left to right or, where it is
// turned around, from right to left; those beside them are black.
void ImageReader::WriteLine(const uint8_t* line, int64_t channel,
                            const Window& window, float* out) const {
  const float* value_of = value_of_.data() + channel * kBytes;
  const int64_t width = shape_.width;
  const int64_t stride = shape_.channels;
  const int64_t shift = window.flipped ? -window.left : window.left;
  const int64_t first =
      line == nullptr ? width : std::clamp<int64_t>(-shift, 0, width);
  const int64_t last = std::clamp<int64_t>(width - shift, first, width);
  for (int64_t x = 0; x < first; ++x) out[x * stride] = value_of[0];
  if (window.flipped) {
    for (int64_t x = first; x < last; ++x) {
      out[x * stride] = value_of[line[width - 1 - x + window.left]];
    }
  } else {
    for (int64_t x = first; x < last; ++x) {
      out[x * stride] = value_of[line[x + window.left]];
    }
  }
  for (int64_t x = last; x < width; ++x) out[x * stride] = value_of[0];
}

ImageReader::Window ImageReader::Draw(uint64_t random) const {
  const int64_t windows = 2 * padding_ + 1;
  return {.top = Choose(windows, random) - padding_,
          .left = Choose(windows, random >> 16) - padding_,
          .flipped = flips_ && (random >> 32 & 1) != 0};
}

}  // namespace parasol
