#ifndef PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_
#define PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/records.h"
#include "proto/job.pb.h"

namespace parasol {

// Finds the records of a TFRecord file, which is the one that was added last
// and whose bytes are `file`:
//
//   record = length:u64 mask(crc32c(length)):u32 (byte)^length
//            mask(crc32c(bytes)):u32            little-endian
//
// Where the frame is broken, the rest of the file is one broken record: nothing
// tells where the next one begins. The crc of the bytes is not looked at.
void IndexTfRecords(absl::string_view file, Records& records);

// The bytes inside a record's frame.
//   DataLoss  the record is broken, or the crc is another.
absl::StatusOr<absl::string_view> TfRecordBytes(const Records& records,
                                                int64_t record);

// TFRecord files of tf.Example. The features of the first 1,000 records are
// taken for the columns that there are.
//   NotFound, DataLoss, …  as for FindFiles and ReadWholeFile; a broken frame,
//                          unless these are skipped.
//   InvalidArgument        the label, the weight or an input is of a column
//                          that there is not.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenTfRecordSet(
    const job::TfRecordDataset& tfrecord, const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_TFRECORD_SET_H_
