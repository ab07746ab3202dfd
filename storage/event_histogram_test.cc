#include "storage/event_histogram.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "storage/event_file.h"

namespace parasol {
namespace {

using ::google::protobuf::UnknownField;
using ::google::protobuf::UnknownFieldSet;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// tensorflow/core/lib/histogram/histogram.cc, InitDefaultBucketsInner().
std::vector<double> TensorflowsLimits() {
  std::vector<double> limits;
  double v = 1.0e-12;
  std::vector<double> positive;
  while (v < 1.0e20) {
    positive.push_back(v);
    v *= 1.1;
  }
  positive.push_back(std::numeric_limits<double>::max());
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) {
    limits.push_back(-*limit);
  }
  limits.push_back(0.0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

// Histogram::Add() and EncodeToProto() of the same file, with plain loops.
ValueHistogram PlainHistogramOf(const std::vector<float>& values) {
  const std::vector<double> limits = TensorflowsLimits();
  std::vector<double> counts(limits.size());
  ValueHistogram plain;
  plain.min = std::numeric_limits<double>::max();
  plain.max = -plain.min;
  for (const double value : values) {
    size_t bucket = 0;
    while (limits[bucket] <= value) ++bucket;
    ++counts[bucket];
    plain.min = std::fmin(plain.min, value);
    plain.max = std::fmax(plain.max, value);
    plain.num += 1;
    plain.sum += value;
    plain.sum_squares += value * value;
  }
  for (size_t i = 0; i < counts.size();) {
    double end = limits[i];
    const double count = counts[i];
    ++i;
    while (count <= 0 && i < counts.size() && counts[i] <= 0) end = limits[i++];
    plain.bucket_limit.push_back(end);
    plain.bucket.push_back(count);
  }
  return plain;
}

void ExpectSame(const ValueHistogram& got, const ValueHistogram& want) {
  EXPECT_EQ(got.min, want.min);
  EXPECT_EQ(got.max, want.max);
  EXPECT_EQ(got.num, want.num);
  EXPECT_EQ(got.sum, want.sum);
  EXPECT_EQ(got.sum_squares, want.sum_squares);
  EXPECT_EQ(got.bucket_limit, want.bucket_limit);
  EXPECT_EQ(got.bucket, want.bucket);
}

std::vector<float> Normal(size_t size, double deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(EventHistogramTest, HasTensorflowsBuckets) {
  for (const double deviation : {1e-13, 1e-6, .05, 3., 1e18, 1e22}) {
    SCOPED_TRACE(deviation);
    const std::vector<float> values = Normal(20'000, deviation);
    ExpectSame(HistogramOf(values), PlainHistogramOf(values));
  }
}

// The floats on both sides of every limit, and those at the ends.
TEST(EventHistogramTest, AValueAtALimitIsInTheBucketAbove) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,
                               -0.f,
                               std::numeric_limits<float>::denorm_min(),
                               -std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest()};
  for (const double limit : TensorflowsLimits()) {
    if (std::abs(limit) > std::numeric_limits<float>::max()) continue;
    const auto near = static_cast<float>(limit);
    for (const float value :
         {near, std::nextafter(near, kInf), std::nextafter(near, -kInf)}) {
      values.push_back(value);
    }
  }
  for (const float value : values) {
    SCOPED_TRACE(value);
    ExpectSame(HistogramOf({value}), PlainHistogramOf({value}));
    if (HasFailure()) return;
  }
  ExpectSame(HistogramOf(values), PlainHistogramOf(values));
}

TEST(EventHistogramTest, LeavesOutWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  ExpectSame(HistogramOf({nan, 1, kInf, -2, -kInf}), PlainHistogramOf({1, -2}));
  for (const std::vector<float>& none :
       {std::vector<float>{}, {nan}, {kInf, -kInf}}) {
    const ValueHistogram histogram = HistogramOf(none);
    EXPECT_EQ(histogram.num, 0);
    EXPECT_THAT(histogram.bucket, IsEmpty());
  }
}

double DoubleOf(uint64_t bits) { return std::bit_cast<double>(bits); }

std::vector<double> DoublesOf(const std::string& packed) {
  std::vector<double> values(packed.size() / sizeof(double));
  std::memcpy(values.data(), packed.data(), packed.size());
  return values;
}

// A message whose fields are read by their places.
class Message {
 public:
  explicit Message(const std::string& bytes) {
    EXPECT_TRUE(fields_.ParseFromString(bytes));
  }
  int field_count() const { return fields_.field_count(); }
  const UnknownField& field(int i) const { return fields_.field(i); }

 private:
  UnknownFieldSet fields_;
};

// Event { summary: 5 { value: 1 { tag: 1 histo: 5 } } }, HistogramProto's
// fields 1 to 7.
TEST(EventHistogramTest, AnEventHasTheHistogramsBytes) {
  const ValueHistogram want = HistogramOf(Normal(1000, .05));
  const Message event(
      HistogramEvent(absl::FromUnixSeconds(2), 300, "dense/kernel", want));
  ASSERT_EQ(event.field_count(), 3);
  EXPECT_EQ(event.field(0).number(), 1);
  EXPECT_EQ(DoubleOf(event.field(0).fixed64()), 2);
  EXPECT_EQ(event.field(1).number(), 2);
  EXPECT_EQ(event.field(1).varint(), 300u);
  EXPECT_EQ(event.field(2).number(), 5);
  const Message summary(event.field(2).length_delimited());
  ASSERT_EQ(summary.field_count(), 1);
  EXPECT_EQ(summary.field(0).number(), 1);
  const Message value(summary.field(0).length_delimited());
  ASSERT_EQ(value.field_count(), 2);
  EXPECT_EQ(value.field(0).number(), 1);
  EXPECT_EQ(value.field(0).length_delimited(), "dense/kernel");
  EXPECT_EQ(value.field(1).number(), 5);
  const Message fields(value.field(1).length_delimited());
  ASSERT_EQ(fields.field_count(), 7);
  std::vector<int> numbers;
  for (int i = 0; i < 7; ++i) numbers.push_back(fields.field(i).number());
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  ValueHistogram got;
  double* const doubles[] = {&got.min, &got.max, &got.num, &got.sum,
                             &got.sum_squares};
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(fields.field(i).type(), UnknownField::TYPE_FIXED64);
    *doubles[i] = DoubleOf(fields.field(i).fixed64());
  }
  got.bucket_limit = DoublesOf(fields.field(5).length_delimited());
  got.bucket = DoublesOf(fields.field(6).length_delimited());
  ExpectSame(got, want);
}

}  // namespace
}  // namespace parasol
