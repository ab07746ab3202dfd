#include "ml/input/format/raw_columns.h"

#include "ml/input/format/array_set.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/custom_source.h"
#include "ml/input/format/parquet_set.h"
#include "ml/input/format/tfrecord_set.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<RawColumns>> RawColumns::Open(
    const job::Dataset& dataset, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes) {
  switch (dataset.kind_case()) {
    case job::Dataset::kCsv:
      return OpenCsvColumns(dataset.csv(), "csv", data_dir, sample_bytes);
    case job::Dataset::kCriteo:
      return OpenCsvColumns(CsvOf(dataset.criteo()), "criteo", data_dir,
                            sample_bytes);
    case job::Dataset::kRatings:
      return OpenCsvColumns(CsvOf(dataset.ratings()), "ratings", data_dir,
                            sample_bytes);
    case job::Dataset::kTfrecord:
      return OpenTfRecordColumns(dataset.tfrecord(), data_dir, wanted,
                                 sample_bytes);
    case job::Dataset::kArray:
      return OpenArrayColumns(dataset.array(), data_dir, wanted, sample_bytes);
    case job::Dataset::kParquet:
      return OpenParquetColumns(dataset.parquet(), data_dir, wanted,
                                sample_bytes);
    case job::Dataset::kCustom:
      return OpenCustomColumns(dataset.custom(), data_dir);
    default:
      return nullptr;
  }
}

}  // namespace parasol
