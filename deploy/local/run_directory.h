#ifndef PARASOL_DEPLOY_LOCAL_RUN_DIRECTORY_H_
#define PARASOL_DEPLOY_LOCAL_RUN_DIRECTORY_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/directory_lock.h"

// Checkpoint directories for jobs that name none: one directory per run, under
// one root.
namespace parasol {

// Number of runs whose directories stay.
inline constexpr size_t kKeptRuns = 10;

// Returns the root: parasol/runs in `xdg_data_home`, or else in
// .local/share of `home`. Empty if neither is an absolute path.
std::string RunsRoot(const std::string& xdg_data_home, const std::string& home);

// Makes a fresh directory `root`/run-<UTC date and time>-<6 letters>, and
// `root` if it is missing, and returns its path. Removes none.
absl::StatusOr<std::string> MakeRunDirectory(const std::string& root,
                                             absl::Time now);

// Removes the runs of `root` except the kKeptRuns that were changed last, and
// returns how many it removed. Leaves alone what MakeRunDirectory() did not
// name, and every directory that a process holds with DirectoryLock::Share().
size_t RemoveOldRuns(const std::string& root);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_RUN_DIRECTORY_H_
