#ifndef PARASOL_ML_INPUT_OBJECT_OBJECT_COPY_H_
#define PARASOL_ML_INPUT_OBJECT_OBJECT_COPY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/object/stored_object.h"

namespace parasol {

// Returns true if there is a file of so many bytes.
bool IsWholeCopy(const std::string& path, uint64_t bytes);

// Returns the name of the file that a copy is written to.
std::string UnfinishedCopy(const std::string& path);

// Returns InvalidArgument for `bytes` that `folder` has no room for.
absl::Status NoRoomFor(uint64_t bytes, absl::string_view of_what,
                       const std::string& folder);

// Returns the bytes that are free in a folder.
uint64_t FreeBytes(const std::string& folder);

// Writes an object to the file at `path`, which is there when it is whole and
// safe from a loss of power. `threads` pieces are read at a time. The caller
// has the right to write it.
//   DataLoss         the object has changed meanwhile, or is gone.
//   InvalidArgument  the disk is full.
//   any other        as for StoredObject, or the system's; names the file.
absl::Status WriteCopy(const StoredObject& object, const std::string& path,
                       size_t piece_bytes, size_t threads);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_OBJECT_COPY_H_
