#include "worker/chief_beside.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kChiefPollInterval = absl::Milliseconds(50);

// Path of the chief binary as an image installs it (all binaries in one folder)
// or as Bazel builds it (one folder per role).
std::string InstalledChief() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "chief";
  if (fs::is_regular_file(beside, error)) return beside;
  return self.parent_path().parent_path() / "chief" / "chief";
}

absl::Status AsStatus(const ProcessEnd& end) {
  const std::string how =
      absl::StrCat("the chief beside this worker ended with ", Describe(end),
                   "; its last line says why");
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
  Clock& clock = Clock::Real();
  const absl::Time deadline = clock.Now() + limit;
  const bool never = false;
  absl::MutexLock lock(&mu_);
  while (!process_->Poll().has_value()) {
    if (clock.Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the chief beside this worker still runs after ",
                       absl::FormatDuration(limit)));
    }
    clock.AwaitWithTimeout(mu_, absl::Condition(&never), kChiefPollInterval);
  }
  return AsStatus(*process_->Poll());
}

void ChiefBeside::Stop() {
  absl::MutexLock lock(&mu_);
  process_->Terminate();
}

}  // namespace parasol
