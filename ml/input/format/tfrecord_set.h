#ifndef PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_
#define PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/raw_columns.h"
#include "ml/input/record/record_format.h"
#include "ml/input/record/record_reader.h"
#include "proto/job.pb.h"

namespace parasol {

// TFRecord files:
//
//   record = length:u64 mask(crc32c(length)):u32 (byte)^length
//            mask(crc32c(bytes)):u32            little-endian
//
// The rest of a file after a broken frame is one broken record, because the
// next record cannot be found. The crc of the bytes is not checked here.
class TfRecordFormat final : public RecordFormat {
 public:
  absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                              const FilePart& part) override;
  FoundRecord Find(const FilePart& part, size_t at) const override;
};

// Returns the bytes inside a record's frame, valid until `records` reads again.
//   DataLoss  the record is broken, or its crc does not match; or as for
//             RecordReader::Read().
absl::StatusOr<absl::string_view> TfRecordBytes(RecordReader& records,
                                                int64_t record);

// Opens TFRecord files of tf.Example. The columns are the features of the first
// 1,000 records, and those that the model reads wherever a record has them.
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile; a broken frame,
//                          unless corrupt records are skipped.
//   InvalidArgument        the label, the weight or an input names a column
//                          that does not exist.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenTfRecordSet(
    const job::TfRecordDataset& tfrecord, const SetOptions& options);

// Returns the features of the first 1,000 records, in the order of their names,
// and reads no more of the files than these records. Passes over what follows a
// broken frame in a file, and over records that are no tf.Examples.
//   NotFound, DataLoss, …  as for FindFiles and InputFile.
//   InvalidArgument        there is no record with a feature.
absl::StatusOr<std::vector<std::string>> FirstTfRecordColumns(
    const job::TfRecordDataset& tfrecord, const std::string& data_dir);

// Opens the same files as they are. Records that can't be read are errors of
// RawColumns::Read(). `wanted` and `sample_bytes` as in RawColumns::Open().
absl::StatusOr<std::unique_ptr<RawColumns>> OpenTfRecordColumns(
    const job::TfRecordDataset& tfrecord, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_
