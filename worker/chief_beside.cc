#include "worker/chief_beside.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// Where an image installs the binaries (one folder), or where Bazel builds them
// (a folder per role).
std::string InstalledChief() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "chief";
  if (fs::is_regular_file(beside, error)) return beside;
  return self.parent_path().parent_path() / "chief" / "chief";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefBeside>> ChiefBeside::Start(
    const Options& options) {
  SubprocessOptions child;
  child.argv = {options.binary.empty() ? InstalledChief() : options.binary,
                "--beside_worker"};
  child.argv.insert(child.argv.end(), options.arguments.begin(),
                    options.arguments.end());
  child.own_process_group = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> process,
                   Subprocess::Start(child),
                   _ << "the cluster has no chief and worker 0 can't run one");
  return std::unique_ptr<ChiefBeside>(new ChiefBeside(std::move(process)));
}

absl::Status ChiefBeside::Wait(absl::Duration limit) {
  ASSIGN_OR_RETURN(const ProcessEnd end, process_->Wait(limit));
  const std::string how =
      absl::StrCat("the chief beside this worker ended with ", Describe(end));
  switch (static_cast<ExitCode>(end.code())) {
    case ExitCode::kDone:
      return absl::OkStatus();
    case ExitCode::kBadConfiguration:
      return absl::InvalidArgumentError(how);
    case ExitCode::kPermanentFailure:
      return absl::FailedPreconditionError(how);
    case ExitCode::kTerminated:
      return absl::CancelledError(how);
    case ExitCode::kRetryable:
      break;
  }
  return absl::UnavailableError(how);
}

}  // namespace parasol
