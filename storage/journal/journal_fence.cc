#include "storage/journal/journal_fence.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<JournalFence>> JournalFence::Take(
    const std::string& directory) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  const std::string owner = absl::StrCat(directory, ".owner");
  std::string fresh = absl::StrCat(owner, ".XXXXXX");
  const Descriptor made(mkstemp(fresh.data()));
  if (made.get() < 0) return FileError(errno, "make", fresh);
  absl::StatusOr<FileDescriptor> file = FileDescriptor::OpenForReading(fresh);
  const absl::Status named = file.ok() ? Rename(fresh, owner) : file.status();
  if (!named.ok()) {
    unlink(fresh.c_str());
    return named;
  }
  return std::unique_ptr<JournalFence>(new JournalFence(
      std::make_unique<const FileDescriptor>(*std::move(file))));
}

JournalFence::JournalFence(std::unique_ptr<const FileDescriptor> file)
    : file_(std::move(file)) {}

JournalFence::~JournalFence() = default;

bool JournalFence::IsHeld() const {
  struct stat status;
  return fstat(file_->get(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace parasol
