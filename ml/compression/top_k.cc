#include "ml/compression/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/log.h"
#include "base/multiversion.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;

// Adds `gradient` to `residual` and writes to keys[i] the bits of element i
// without their sign, which order as the magnitudes do. All NaNs are equal.
PARASOL_MULTIVERSION
void AddAndKey(size_t count, const float* gradient, float* residual,
               uint32_t* keys) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float v = gradient[i] + residual[i];
    residual[i] = v;
    keys[i] = std::min(std::bit_cast<uint32_t>(v) & kMagnitude, kInfinity + 1);
  }
}

// Never shrinks, so that a smaller block between two larger ones costs nothing.
template <typename T>
void GrowTo(size_t size, std::vector<T>& vector) {
  if (vector.size() < size) vector.resize(size);
}

// One digit of a key, from the most significant: 11 bits, 10, 10.
struct Digit {
  int shift;
  uint32_t mask;
};
constexpr Digit kDigits[] = {{20, 0x7ff}, {10, 0x3ff}, {0, 0x3ff}};

}  // namespace

size_t KeptCount(size_t count, double share) {
  const auto kept = static_cast<size_t>(std::ceil(share * count));
  return std::min(count, std::max<size_t>(1, kept));
}

TopK::Kept TopK::Select(absl::Span<const float> gradient, double share,
                        job::Encoding encoding, absl::Span<float> residual) {
  CHECK_EQ(gradient.size(), residual.size());
  const size_t count = gradient.size();
  const size_t kept = KeptCount(count, share);
  if (kept == 0) return {};
  GrowTo(count, keys_);
  GrowTo(count, candidates_);
  // Collect() writes one element past the last that it keeps.
  GrowTo(kept + 1, offsets_);
  GrowTo(kept, values_);
  AddAndKey(count, gradient.data(), residual.data(), keys_.data());
  Collect(count, FindThreshold(count, kept));
  TakeValues(encoding, kept, residual.data());
  return {.offsets = absl::MakeConstSpan(offsets_).subspan(0, kept),
          .values = absl::MakeConstSpan(values_).subspan(0, kept)};
}

// A radix sort that follows one bucket only: the one that has the kept-th
// largest key.
TopK::Threshold TopK::FindThreshold(size_t count, size_t kept) {
  Threshold threshold{.equal = kept};
  const uint32_t* keys = keys_.data();
  for (const Digit digit : kDigits) {
    histogram_.fill(0);
    for (size_t i = 0; i < count; ++i) {
      ++histogram_[keys[i] >> digit.shift & digit.mask];
    }
    uint32_t bucket = digit.mask;
    while (histogram_[bucket] < threshold.equal) {
      threshold.equal -= histogram_[bucket--];
    }
    threshold.key |= bucket << digit.shift;
    // In place from the second digit on: it writes behind what it reads.
    size_t candidates = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t key = keys[i];
      candidates_[candidates] = key;
      candidates += (key >> digit.shift & digit.mask) == bucket;
    }
    keys = candidates_.data();
    count = candidates;
  }
  return threshold;
}

// Without a jump that depends on a key: half of them would be mispredicted.
void TopK::Collect(size_t count, Threshold threshold) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t key = keys_[i];
    const bool equal = (key == threshold.key) & (threshold.equal > 0);
    threshold.equal -= equal;
    offsets_[kept] = static_cast<uint32_t>(i);
    kept += (key > threshold.key) | equal;
  }
}

void TopK::TakeValues(job::Encoding encoding, size_t kept, float* residual) {
  const absl::Span<float> values = absl::MakeSpan(values_).subspan(0, kept);
  for (size_t j = 0; j < kept; ++j) values[j] = residual[offsets_[j]];
  if (encoding != job::FLOAT32) {
    GrowTo(EncodedBytes(encoding, kept), encoded_);
    Encode(encoding, values, encoded_.data());
    Decode(encoding, encoded_.data(), values);
  }
  for (size_t j = 0; j < kept; ++j) {
    float& rest = residual[offsets_[j]];
    rest = std::isfinite(values[j]) ? rest - values[j] : 0;
  }
}

}  // namespace parasol
