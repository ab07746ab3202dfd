#ifndef PARASOL_STORAGE_SST_FOOTER_H_
#define PARASOL_STORAGE_SST_FOOTER_H_

#include "absl/status/status.h"
#include "storage/checked_file.h"

namespace parasol {

// Checks that the places named by an SST file's footer are inside the file. All
// else in the file has checksums; RocksDB would allocate whatever a damaged
// footer says.
//   DataLoss     they are not, or it is no footer.
//   Unavailable  the file system refuses.
absl::Status CheckFooter(CheckedFile& file);

}  // namespace parasol

#endif  // PARASOL_STORAGE_SST_FOOTER_H_
