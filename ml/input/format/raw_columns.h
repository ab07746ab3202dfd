#ifndef PARASOL_ML_INPUT_FORMAT_RAW_COLUMNS_H_
#define PARASOL_ML_INPUT_FORMAT_RAW_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// The columns of a data set's records as they are in the files, whatever a
// model reads of them. Not thread-safe.
class RawColumns {
 public:
  // Opens the files of `dataset`, whose paths are relative to `data_dir`.
  // `wanted`: columns that a TFRecord has if any of its records does, that
  // arrays must all have the same number of examples for, and that are read of
  // Parquet files, which then have no values of others; none: all columns that
  // can be read. `sample_bytes`: as SetOptions::sample_bytes. Null if its
  // records have no named columns, as images and libsvm's lines.
  //   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile.
  //   InvalidArgument        the files' headers differ.
  static absl::StatusOr<std::unique_ptr<RawColumns>> Open(
      const job::Dataset& dataset, const std::string& data_dir,
      const std::vector<std::string>& wanted = {}, int64_t sample_bytes = 0);
  virtual ~RawColumns() = default;

  // Names of all columns, label and weight included; of a TFRecord the features
  // of its first 1,000 records, and the wanted ones.
  const std::vector<std::string>& names() const { return names_; }

  // Columns that the data themselves say have labels and weights, as a data
  // source of a user's own does; empty if the job says which, or there are
  // none.
  const std::string& label() const { return label_; }
  const std::string& weight() const { return weight_; }

  // False if the values of column number `column` are not read, as nobody wants
  // them: Read() has none.
  virtual bool has_values(size_t column) const { return true; }

  // Bytes of the records as a set keeps them, unpacked; nullopt if the files
  // have as many, or that is not known.
  virtual std::optional<uint64_t> unpacked_bytes() const {
    return std::nullopt;
  }

  // Number of records, corrupt ones included.
  virtual int64_t size() const = 0;

  // True if the files have more, which was left out.
  virtual bool is_sample() const { return false; }

  // Returns OK unless a part of a file is no record at all.
  //   DataLoss  names the file and the offset.
  virtual absl::Status CheckWhole() const { return absl::OkStatus(); }

  // Replaces `row` by the values of a record, in the order of names(); a column
  // without a value is missing. Texts are valid until the next call.
  //   DataLoss  the record is corrupt: names the file and the offset.
  virtual absl::Status Read(int64_t record, ColumnValues& row) = 0;

 protected:
  explicit RawColumns(std::vector<std::string> names, std::string label = "",
                      std::string weight = "")
      : names_(std::move(names)),
        label_(std::move(label)),
        weight_(std::move(weight)) {}

 private:
  const std::vector<std::string> names_;
  const std::string label_;
  const std::string weight_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_RAW_COLUMNS_H_
