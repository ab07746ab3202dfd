#ifndef PARASOL_STORAGE_SST_FOOTER_H_
#define PARASOL_STORAGE_SST_FOOTER_H_

#include "absl/status/status.h"
#include "storage/checked_file.h"

namespace parasol {

// Checks that the places named by an SST file's footer are inside the file,
// that its blocks have checksums, and the end of its properties. All else in
// the file is compared with checksums; RocksDB would allocate whatever a
// damaged footer says, and ends the process for a damaged end of the
// properties.
//   DataLoss     they are not, or it is no footer.
//   Unavailable  the file system refuses.
absl::Status CheckFooter(CheckedFile& file);

}  // namespace parasol

#endif  // PARASOL_STORAGE_SST_FOOTER_H_
