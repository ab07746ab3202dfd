#include "storage/remote/remote_directory.h"

#include <vector>

#include "base/status_macros.h"
#include "storage/remote/remote_files.h"

namespace parasol {
namespace {

constexpr int kMostAttempts = 8;

}  // namespace

absl::StatusOr<RemoteListing> ListRemote(const std::string& directory) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
  ASSIGN_OR_RETURN(const std::vector<RemoteFiles::Entry> entries,
                   files->ListAll(directory));
  RemoteListing listing;
  for (const RemoteFiles::Entry& entry : entries) {
    const size_t slash = entry.name.find('/');
    // No path leads to it: "ckpt-…//x".
    if (slash == 0) continue;
    const bool is_in_folder = slash != std::string::npos;
    listing[is_in_folder ? entry.name.substr(0, slash) : ""]
           [is_in_folder ? entry.name.substr(slash + 1) : entry.name] =
               entry.bytes;
  }
  return listing;
}

absl::Status WriteChecked(const std::string& path, absl::string_view bytes,
                          absl::FunctionRef<absl::Status()> may_write) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  for (int attempt = 1;; ++attempt) {
    RETURN_IF_ERROR(may_write());
    const absl::Status written = files->WriteOnce(path, bytes);
    if (!absl::IsUnavailable(written) || attempt == kMostAttempts) {
      return written;
    }
    files->Pause(attempt);
  }
}

}  // namespace parasol
