#include "cluster/job/job_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/faults.h"
#include "base/status_macros.h"
#include "cluster/job/column_patterns.h"
#include "cluster/job/defaults.h"
#include "cluster/job/override.h"
#include "cluster/job/syntax/first_parse_error.h"
#include "cluster/job/validate.h"

namespace parasol {
namespace {

// Whatever is wrong, --job is to be corrected: no try of the same will do.
absl::Status CannotRead(const std::string& path, int code) {
  const std::string message =
      absl::StrCat("job file ", path, ": ", std::strerror(code),
                   "; name a file that this process can read with --job");
  return code == ENOENT ? absl::NotFoundError(message)
                        : absl::InvalidArgumentError(message);
}

absl::Status ApplyOverrides(job::Job& job,
                            absl::Span<const std::string> overrides) {
  for (const std::string& override : overrides) {
    RETURN_IF_ERROR(ApplyOverride(job, override));
  }
  return absl::OkStatus();
}

// Fills in the defaults, and validates.
absl::StatusOr<LoadedJob> Complete(job::Job job) {
  FillDefaults(job);
  ASSIGN_OR_RETURN(Graph graph, Validate(job));
  return LoadedJob{std::move(job), std::move(graph)};
}

}  // namespace

absl::StatusOr<std::string> ReadJobFile(const std::string& path) {
  // Not blocking, so that a pipe without a writer is refused, not waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return CannotRead(path, errno);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat about;
  if (fstat(fd, &about) != 0) return CannotRead(path, errno);
  if (S_ISDIR(about.st_mode)) return CannotRead(path, EISDIR);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job file ", path,
        ": is a pipe, a device or the like, which only one process can read, "
        "once; write the job to a file"));
  }
  std::string text(kMaxJobFileBytes + 1, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t n = read(fd, text.data() + filled, text.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(path, errno);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  text.resize(filled);
  return text;
}

absl::StatusOr<job::Job> ParseJob(absl::string_view text,
                                  absl::string_view file_name) {
  if (text.size() > kMaxJobFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_name, ": longer than the limit of ", kMaxJobFileBytes, " bytes"));
  }
  job::Job job;
  const std::optional<ParseFault> fault = ParseJobText(std::string(text), job);
  if (!fault.has_value()) return job;
  return absl::InvalidArgumentError(
      absl::StrCat(file_name, ":", fault->line + 1, ":", fault->column + 1,
                   ": ", fault->message));
}

absl::StatusOr<LoadedJob> LoadJob(job::Job job,
                                  absl::Span<const std::string> overrides) {
  RETURN_IF_ERROR(ApplyOverrides(job, overrides));
  return Complete(std::move(job));
}

absl::StatusOr<LoadedJob> LoadJobFile(const std::string& path,
                                      absl::Span<const std::string> overrides,
                                      const std::string& data_dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadJobFile(path));
  ASSIGN_OR_RETURN(job::Job job, ParseJob(text, path));
  RETURN_IF_ERROR(ApplyOverrides(job, overrides));
  Faults faults;
  ColumnPatterns::Resolve(data_dir, job, faults);
  RETURN_IF_ERROR(faults.first()) << path;
  ASSIGN_OR_RETURN(LoadedJob loaded, Complete(std::move(job)), _ << path);
  return loaded;
}

}  // namespace parasol
