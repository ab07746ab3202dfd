#ifndef PARASOL_STORAGE_REMOTE_REMOTE_DIRECTORY_H_
#define PARASOL_STORAGE_REMOTE_REMOTE_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The files of a directory of a store, by the names of the folders in it, ""
// for the directory itself, and their own names, with their sizes.
using RemoteListing = std::map<std::string, std::map<std::string, uint64_t>>;

// Returns all files of a directory; none if it has none. Their names are as
// others may have chosen them: see IsPlainName() before one gets a path. Fails
// as RemoteFiles::ListAll() does.
absl::StatusOr<RemoteListing> ListRemote(const std::string& directory);

// Writes a file that is complete by being there, such as a manifest. Tries it
// several times, and calls `may_write` before each, whose error ends it: what
// was true when the first try began may be so no more.
absl::Status WriteChecked(const std::string& path, absl::string_view bytes,
                          absl::FunctionRef<absl::Status()> may_write);

}  // namespace parasol

#endif  // PARASOL_STORAGE_REMOTE_REMOTE_DIRECTORY_H_
