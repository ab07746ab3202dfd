#ifndef PARASOL_ML_KERNEL_CHANNEL_SUMS_H_
#define PARASOL_ML_KERNEL_CHANNEL_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// [rows, channels] float32 seen as rows of `width` elements, a multiple of
// channels: so that a loop over few channels fills vectors. Element i of each
// wide row is of channel i % channels; the last one may be shorter.
struct WideRows {
  WideRows(int64_t rows, int64_t channels);

  int64_t count() const { return (size + width - 1) / width; }
  // `per_channel` again and again, `width` elements.
  void Repeat(absl::Span<const float> per_channel, float* wide) const;

  int64_t channels;
  int64_t width;
  int64_t size;  // rows · channels
};

// Sums over the rows of [rows, channels], for a CpuDevice: float32 over some
// thousand elements at a time, those sums in double, so that the number of rows
// costs no precision. Allocates nothing after construction. Borrows the device.
// Not thread-safe.
class ChannelSums {
 public:
  // Of the elements [begin, begin + size), whole wide rows (but perhaps the
  // last): adds to sums[s · width + i] for each of the sums s. Called by
  // several threads.
  using Add = absl::FunctionRef<void(int64_t begin, int64_t size, float* sums)>;

  // `sums`: of how many terms for each element.
  ChannelSums(Device& device, const WideRows& rows, int sums);

  // [sums, channels]; valid until the next call.
  absl::Span<const double> Run(Add add);

  // Run() for the elements of `x` themselves: writes [channels].
  void SumRows(const float* x, float* sums);

 private:
  struct Part {
    std::vector<float> sums;     // [sums, width], of some wide rows
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

#endif  // PARASOL_ML_KERNEL_CHANNEL_SUMS_H_
