#include "storage/event_histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/proto_bytes.h"

namespace parasol {
namespace {

// Fields of tensorflow.HistogramProto.
enum : int {
  kMin = 1,
  kMax = 2,
  kNum = 3,
  kSum = 4,
  kSumSquares = 5,
  kBucketLimit = 6,
  kBucket = 7,
};

// The upper limits of TensorFlow's buckets, and for each float the first bucket
// that it can be in.
class Buckets {
 public:
  Buckets() {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) {
      positive.push_back(limit);
    }
    positive.push_back(std::numeric_limits<double>::max());
    for (size_t i = positive.size(); i > 0; --i) {
      limits_.push_back(-positive[i - 1]);
    }
    limits_.push_back(0);
    limits_.insert(limits_.end(), positive.begin(), positive.end());
    for (uint32_t high = 0; high < first_.size(); ++high) {
      // The smallest of the floats whose upper half is this one.
      const uint32_t low = high & 0x8000 ? 0xffff : 0;
      const auto smallest = std::bit_cast<float>(high << 16 | low);
      first_[high] = std::isfinite(smallest) ? Find(smallest) : 0;
    }
  }

  // `value` is finite.
  size_t Of(float value) const {
    size_t bucket = first_[std::bit_cast<uint32_t>(value) >> 16];
    while (value >= limits_[bucket]) ++bucket;
    return bucket;
  }

  const std::vector<double>& limits() const { return limits_; }

 private:
  size_t Find(double value) const {
    return std::upper_bound(limits_.begin(), limits_.end(), value) -
           limits_.begin();
  }

  std::vector<double> limits_;
  std::array<uint16_t, 65536> first_;
};

const Buckets& AllBuckets() {
  static const auto* const buckets = new Buckets();
  return *buckets;
}

void AppendDoubles(int field, const std::vector<double>& values,
                   std::string& out) {
  std::string packed;
  for (const double value : values) {
    proto_bytes::AppendLittleEndian(std::bit_cast<uint64_t>(value), packed);
  }
  proto_bytes::AppendBytes(field, packed, out);
}

}  // namespace

ValueHistogram HistogramOf(absl::Span<const float> values) {
  const Buckets& buckets = AllBuckets();
  std::vector<int64_t> counts(buckets.limits().size());
  ValueHistogram histogram;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    if (histogram.num == 0) histogram.min = histogram.max = value;
    histogram.min = std::min<double>(histogram.min, value);
    histogram.max = std::max<double>(histogram.max, value);
    ++histogram.num;
    histogram.sum += value;
    histogram.sum_squares += static_cast<double>(value) * value;
    ++counts[buckets.Of(value)];
  }
  if (histogram.num == 0) return histogram;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 && i > 0 && counts[i - 1] == 0) {
      histogram.bucket_limit.back() = buckets.limits()[i];
      continue;
    }
    histogram.bucket_limit.push_back(buckets.limits()[i]);
    histogram.bucket.push_back(static_cast<double>(counts[i]));
  }
  return histogram;
}

std::string HistogramBytes(const ValueHistogram& histogram) {
  std::string bytes;
  proto_bytes::AppendDouble(kMin, histogram.min, bytes);
  proto_bytes::AppendDouble(kMax, histogram.max, bytes);
  proto_bytes::AppendDouble(kNum, histogram.num, bytes);
  proto_bytes::AppendDouble(kSum, histogram.sum, bytes);
  proto_bytes::AppendDouble(kSumSquares, histogram.sum_squares, bytes);
  AppendDoubles(kBucketLimit, histogram.bucket_limit, bytes);
  AppendDoubles(kBucket, histogram.bucket, bytes);
  return bytes;
}

}  // namespace parasol
