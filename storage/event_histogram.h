#ifndef PARASOL_STORAGE_EVENT_HISTOGRAM_H_
#define PARASOL_STORAGE_EVENT_HISTOGRAM_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The distribution of a variable's values, as tensorflow.HistogramProto has it.
struct ValueHistogram {
  double min = 0;
  double max = 0;
  double num = 0;  // number of values
  double sum = 0;
  double sum_squares = 0;
  // Bucket i has the values from bucket_limit[i - 1] on, and below
  // bucket_limit[i]. A run of empty buckets is one.
  std::vector<double> bucket_limit;
  std::vector<double> bucket;
};

// Returns the histogram of `values`, in the buckets that TensorFlow has: from 0
// and 1e-12 on each limit is 1.1 times the last one, and the negative ones are
// their mirror image. Values that are not finite are left out; without any
// finite one `num` is 0, and there is no bucket.
ValueHistogram HistogramOf(absl::Span<const float> values);

// Returns the bytes of a tensorflow.HistogramProto.
std::string HistogramBytes(const ValueHistogram& histogram);

}  // namespace parasol

#endif  // PARASOL_STORAGE_EVENT_HISTOGRAM_H_
