#ifndef PARASOL_ML_KERNEL_NORMALIZATION_CHANNEL_SUMS_H_
#define PARASOL_ML_KERNEL_NORMALIZATION_CHANNEL_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// An array [rows, channels] of float32 seen as rows of `width` elements, where
// `width` is a multiple of `channels`, so that a loop over few channels fills
// vectors. Element i of each wide row belongs to channel i % channels. The last
// wide row may be shorter.
struct WideRows {
  WideRows(int64_t rows, int64_t channels);

  int64_t count() const { return (size + width - 1) / width; }
  // Writes `per_channel` to `wide` again and again, `width` elements in all.
  void Repeat(absl::Span<const float> per_channel, float* wide) const;

  int64_t channels;
  int64_t width;
  int64_t size;  // rows · channels
};

// Sums over the rows of [rows, channels], for a CpuDevice. Some thousand
// elements at a time are summed in float32 and those sums in double, so that
// many rows cost no precision. Allocates nothing after construction. Borrows
// the device. Not thread-safe.
class ChannelSums {
 public:
  // A function that adds the elements [begin, begin + size) to the sums:
  // element i of a wide row to sums[s · width + i], for each sum s. The
  // elements are whole wide rows, except that the last wide row may be shorter.
  // Called by several threads.
  using Add = absl::FunctionRef<void(int64_t begin, int64_t size, float* sums)>;

  // `sums` is the number of sums per channel that Run() computes.
  ChannelSums(Device& device, const WideRows& rows, int sums);

  // Returns the sums [sums, channels]. They are valid until the next call.
  absl::Span<const double> Run(Add add);

  // Writes the sums of the elements of `x` to `sums` [channels].
  void SumRows(const float* x, float* sums);

 private:
  struct Part {
    std::vector<float> sums;     // [sums, width], sums of some wide rows
    std::vector<double> totals;  // [sums, width]
  };

  void RunPart(int64_t begin, int64_t end, Add add, Part& part) const;
  void Fold(const Part& part);

  Device& device_;
  const WideRows rows_;
  std::vector<Part> parts_;
  std::vector<double> totals_;
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_NORMALIZATION_CHANNEL_SUMS_H_
