#include "ml/kernel/normalization/channel_sums.h"

#include <algorithm>

#include "base/multiversion.h"
#include "ml/device/parallel.h"

namespace parasol {
namespace {

// Width of the widened rows: some vectors, and still a small part of a
// first-level cache.
constexpr int64_t kWidth = 256;
// How many wide rows are summed in float32.
constexpr int64_t kRowsPerSum = 32;

PARASOL_MULTIVERSION
void AddToTotals(const float* sums, int64_t size, double* totals) {
  for (int64_t i = 0; i < size; ++i) totals[i] += sums[i];
}

PARASOL_MULTIVERSION
void AddRows(const float* x, int64_t size, int64_t width, float* sums) {
  for (; size > 0; size -= width, x += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) sums[i] += x[i];
  }
}

}  // namespace

WideRows::WideRows(int64_t rows, int64_t channels)
    : channels(channels),
      width(std::max<int64_t>(kWidth / channels, 1) * channels),
      size(rows * channels) {}

void WideRows::Repeat(absl::Span<const float> per_channel, float* wide) const {
  for (int64_t i = 0; i < width; i += channels) {
    std::copy_n(per_channel.data(), channels, wide + i);
  }
}

ChannelSums::ChannelSums(Device& device, const WideRows& rows, int sums)
    : device_(device),
      rows_(rows),
      parts_(PartsOf(device, rows.count(), kRowsPerSum)),
      totals_(sums * rows.channels) {
  for (Part& part : parts_) {
    part.sums.resize(sums * rows.width);
    part.totals.resize(sums * rows.width);
  }
}

absl::Span<const double> ChannelSums::Run(Add add) {
  ParallelFor(device_, rows_.count(), kRowsPerSum,
              [&](int64_t part, int64_t begin, int64_t end) {
                RunPart(begin, end, add, parts_[part]);
              });
  std::fill(totals_.begin(), totals_.end(), 0);
  for (const Part& part : parts_) Fold(part);
  return totals_;
}

void ChannelSums::RunPart(int64_t begin, int64_t end, Add add,
                          Part& part) const {
  std::fill(part.totals.begin(), part.totals.end(), 0);
  for (int64_t row = begin; row < end; row += kRowsPerSum) {
    std::fill(part.sums.begin(), part.sums.end(), 0);
    const int64_t first = row * rows_.width;
    const int64_t last =
        std::min(std::min(row + kRowsPerSum, end) * rows_.width, rows_.size);
    add(first, last - first, part.sums.data());
    AddToTotals(part.sums.data(), part.sums.size(), part.totals.data());
  }
}

void ChannelSums::Fold(const Part& part) {
  const double* in = part.totals.data();
  for (size_t sum = 0; sum < totals_.size(); sum += rows_.channels) {
    for (int64_t i = 0; i < rows_.width; ++i) {
      totals_[sum + i % rows_.channels] += *in++;
    }
  }
}

void ChannelSums::SumRows(const float* x, float* sums) {
  const absl::Span<const double> totals =
      Run([&](int64_t begin, int64_t size, float* part) {
        AddRows(x + begin, size, rows_.width, part);
      });
  std::copy(totals.begin(), totals.end(), sums);
}

}  // namespace parasol
