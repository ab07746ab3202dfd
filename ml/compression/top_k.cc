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

// Keys that are looked at together, a vector register's: most lots have none of
// the few large keys.
constexpr size_t kLot = 16;

template <typename Predicate>
inline bool AnyOfLot(const uint32_t* keys, Predicate predicate) {
  uint32_t any = 0;
  for (size_t j = 0; j < kLot; ++j) any |= predicate(keys[j]);
  return any != 0;
}

// Copies the keys in [low, high] to `out`, which may be `keys`, and returns
// their number. Without a jump that depends on a single key: half of them would
// be mispredicted.
PARASOL_MULTIVERSION
size_t CopyKeysBetween(uint32_t low, uint32_t high, const uint32_t* keys,
                       size_t count, uint32_t* out) {
  const auto between = [=](uint32_t key) { return key - low <= high - low; };
  size_t copied = 0;
  for (size_t begin = 0; begin < count; begin += kLot) {
    const size_t end = std::min(count, begin + kLot);
    if (end == begin + kLot && !AnyOfLot(keys + begin, between)) continue;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t key = keys[i];
      out[copied] = key;
      copied += between(key);
    }
  }
  return copied;
}

// Writes the offsets of all keys above `threshold` and of the first `equal` of
// those that are equal to it.
PARASOL_MULTIVERSION
void CollectOffsets(uint32_t threshold, size_t equal, const uint32_t* keys,
                    size_t count, uint32_t* offsets) {
  for (size_t begin = 0; begin < count; begin += kLot) {
    const size_t end = std::min(count, begin + kLot);
    if (end == begin + kLot &&
        !AnyOfLot(keys + begin, [=](uint32_t k) { return k >= threshold; })) {
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      const bool take_equal = (keys[i] == threshold) & (equal > 0);
      equal -= take_equal;
      *offsets = static_cast<uint32_t>(i);
      offsets += (keys[i] > threshold) | take_equal;
    }
  }
}

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
  // CollectOffsets() writes one past the last.
  GrowTo(kept + 1, offsets_);
  GrowTo(kept, values_);
  AddAndKey(count, gradient.data(), residual.data(), keys_.data());
  const Threshold threshold = FindThreshold(count, kept);
  CollectOffsets(threshold.key, threshold.equal, keys_.data(), count,
                 offsets_.data());
  TakeValues(encoding, kept, residual.data());
  return {.offsets = absl::MakeConstSpan(offsets_).subspan(0, kept),
          .values = absl::MakeConstSpan(values_).subspan(0, kept)};
}

// The sums end in histograms_[0].
void TopK::CountByDigit(const uint32_t* keys, size_t count, int shift,
                        uint32_t mask) {
  for (Histogram& histogram : histograms_) histogram.fill(0);
  for (size_t i = 0; i < count; ++i) {
    ++histograms_[i % kHistograms][keys[i] >> shift & mask];
  }
  for (size_t h = 1; h < kHistograms; ++h) {
    for (size_t b = 0; b < kBuckets; ++b) {
      histograms_[0][b] += histograms_[h][b];
    }
  }
}

// A radix sort that follows one bucket only: the one that has the kept-th
// largest key.
TopK::Threshold TopK::FindThreshold(size_t count, size_t kept) {
  Threshold threshold{.equal = kept};
  const uint32_t* keys = keys_.data();
  for (const auto [shift, mask] : kDigits) {
    CountByDigit(keys, count, shift, mask);
    uint32_t bucket = mask;
    while (histograms_[0][bucket] < threshold.equal) {
      threshold.equal -= histograms_[0][bucket--];
    }
    threshold.key |= bucket << shift;
    // In place from the second digit on: it writes behind what it reads.
    count = CopyKeysBetween(threshold.key, threshold.key | ((1u << shift) - 1),
                            keys, count, candidates_.data());
    keys = candidates_.data();
  }
  return threshold;
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
