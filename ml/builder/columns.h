#ifndef PARASOL_ML_BUILDER_COLUMNS_H_
#define PARASOL_ML_BUILDER_COLUMNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

// Columns for ModelBuilder's inputs. Each is named as a column of the data set
// (proto/job.proto, NumericColumn and IdColumn).
namespace parasol {

struct NumericOptions {
  std::optional<double> default_value = {};
  bool log1p = false;
  double mean = 0;
  double stddev = 1;
};
job::NumericColumn Numeric(absl::string_view name,
                           const NumericOptions& options = {});

// A column whose values are hashed to `buckets` ids; 0 buckets stand for 2^64.
job::IdColumn Hashed(absl::string_view name, int64_t buckets = 0);
// A cross: the values of several columns together, hashed as one value.
job::IdColumn Crossed(absl::Span<const std::string> names, int64_t buckets = 0);
job::IdColumn OfVocabulary(absl::string_view name,
                           absl::Span<const std::string> values);
job::IdColumn Bucketized(absl::string_view name,
                         absl::Span<const double> boundaries);
job::IdColumn IdentityOf(absl::string_view name, int64_t num_ids);

}  // namespace parasol

#endif  // PARASOL_ML_BUILDER_COLUMNS_H_
