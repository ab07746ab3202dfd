#include "ml/builder/columns.h"

namespace parasol {
namespace {

job::IdColumn IdsOf(absl::string_view name) {
  job::IdColumn column;
  column.add_name(std::string(name));
  return column;
}

}  // namespace

job::NumericColumn Numeric(absl::string_view name,
                           const NumericOptions& options) {
  job::NumericColumn column;
  column.set_name(std::string(name));
  if (options.default_value.has_value()) {
    column.set_default_value(*options.default_value);
  }
  if (options.log1p) column.set_log1p(true);
  if (options.mean != 0) column.set_mean(options.mean);
  if (options.stddev != 1) column.set_stddev(options.stddev);
  return column;
}

job::IdColumn Hashed(absl::string_view name, int64_t buckets) {
  return Crossed({std::string(name)}, buckets);
}

job::IdColumn Crossed(absl::Span<const std::string> names, int64_t buckets) {
  job::IdColumn column;
  column.mutable_name()->Add(names.begin(), names.end());
  column.mutable_hash();
  if (buckets != 0) column.mutable_hash()->set_buckets(buckets);
  return column;
}

job::IdColumn OfVocabulary(absl::string_view name,
                           absl::Span<const std::string> values) {
  job::IdColumn column = IdsOf(name);
  column.mutable_vocabulary()->mutable_value()->Add(values.begin(),
                                                    values.end());
  return column;
}

job::IdColumn Bucketized(absl::string_view name,
                         absl::Span<const double> boundaries) {
  job::IdColumn column = IdsOf(name);
  column.mutable_boundaries()->mutable_boundary()->Add(boundaries.begin(),
                                                       boundaries.end());
  return column;
}

job::IdColumn IdentityOf(absl::string_view name, int64_t num_ids) {
  job::IdColumn column = IdsOf(name);
  column.mutable_identity()->set_num_ids(num_ids);
  return column;
}

}  // namespace parasol
