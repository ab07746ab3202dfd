#ifndef PARASOL_ML_INPUT_FORMAT_READ_RECORDS_H_
#define PARASOL_ML_INPUT_FORMAT_READ_RECORDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/format/data_files.h"
#include "ml/input/record/record_format.h"
#include "ml/input/record/records.h"

namespace parasol {

// Finds the records of files: in memory if all files are small enough together
// (MostInMemory()) or a sample of them is read, otherwise where they are on the
// disk. Packed files are then unpacked once, into a file without a name.
//   DataLoss         a file is no whole gzip.
//   InvalidArgument  it is of another format (known_format.h), or there is no
//                    room for what is unpacked.
//   any other        as for RecordFormat::Begin(), InputFile and StoredFile.
absl::StatusOr<Records> ReadRecords(DataFiles files,
                                    std::shared_ptr<RecordFormat> format,
                                    Records::Content content,
                                    const SetMemory& memory);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_READ_RECORDS_H_
