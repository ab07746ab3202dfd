#include "ml/input/file/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "ml/input/file/open_error.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"

namespace parasol {
namespace {

// Not blocking, so that a pipe without a writer is refused, not waited for.
Descriptor OpenToRead(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

absl::StatusOr<StoredFile> StoredFile::Open(const std::string& path,
                                            bool keep_open) {
  if (!IsUri(path)) return OpenLocal(path, path, keep_open);
  ASSIGN_OR_RETURN(ObjectCache::Opened opened,
                   ObjectCache::OfProcess().Open(path));
  if (opened.object == nullptr) {
    return OpenLocal(path, opened.copy, keep_open);
  }
  StoredFile file;
  file.path_ = path;
  file.remote_ = std::make_shared<RemoteFile>(std::move(opened.object));
  file.size_ = file.remote_->size();
  return file;
}

absl::StatusOr<StoredFile> StoredFile::OpenLocal(const std::string& path,
                                                 const std::string& local,
                                                 bool keep_open) {
  Descriptor descriptor = OpenToRead(local);
  if (!descriptor.is_open()) return OpenError(path, errno);
  struct stat about;
  if (fstat(descriptor.get(), &about) != 0) {
    return OpenError(path, errno);
  }
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file"));
  }
  StoredFile file;
  file.path_ = path;
  file.local_ = local;
  file.size_ = static_cast<uint64_t>(about.st_size);
  file.identity_ = IdentityOf(about);
  if (keep_open) file.descriptor_ = std::move(descriptor);
  return file;
}

StoredFile StoredFile::Unpacked(std::string path,
                                std::shared_ptr<const TemporaryFile> unpacked,
                                uint64_t offset) {
  StoredFile file;
  file.path_ = std::move(path);
  file.begin_ = offset;
  file.size_ = unpacked->size() - offset;
  file.unpacked_ = std::move(unpacked);
  return file;
}

StoredFile StoredFile::Part(StoredFile file, uint64_t offset, uint64_t size) {
  file.begin_ += offset;
  file.shown_ += offset;
  file.size_ = size;
  return file;
}

absl::Status StoredFile::Read(uint64_t offset, absl::Span<char> out) const {
  if (unpacked_ != nullptr) {
    return ReadFrom(unpacked_->descriptor(), offset, out);
  }
  if (remote_ != nullptr) return remote_->Read(begin_ + offset, out);
  Descriptor reopened;
  if (!descriptor_.is_open()) {
    reopened = OpenToRead(local_);
    if (!reopened.is_open()) return CantRead(errno, offset);
  }
  const int descriptor =
      descriptor_.is_open() ? descriptor_.get() : reopened.get();
  // What was read may be another file's, or written in between.
  const absl::Status read = ReadFrom(descriptor, offset, out);
  struct stat about;
  if (fstat(descriptor, &about) != 0) return CantRead(errno, offset);
  const Identity now = IdentityOf(about);
  if (now == identity_) return read;
  return Lost(offset,
              absl::StrCat("the file has changed since it was opened, when it "
                           "had ",
                           identity_.bytes, " bytes (now ", now.bytes,
                           "); data larger than an eighth of the memory must "
                           "stay as they are while they are read"));
}

StoredFile::Identity StoredFile::IdentityOf(const struct stat& about) {
  return Identity{.device = about.st_dev,
                  .inode = about.st_ino,
                  .bytes = about.st_size,
                  .changed = about.st_mtim};
}

absl::Status StoredFile::ReadFrom(int descriptor, uint64_t offset,
                                  absl::Span<char> out) const {
  uint64_t at = offset;
  while (!out.empty()) {
    const ssize_t n = pread(descriptor, out.data(), out.size(),
                            static_cast<off_t>(begin_ + at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CantRead(errno, at);
    if (n == 0) return Lost(at, "the file ends, and was longer when opened");
    out.remove_prefix(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status StoredFile::CantRead(int error, uint64_t offset) const {
  // A file that is gone does not come back; all else may pass.
  if (error == ENOENT) return Lost(offset, std::strerror(error));
  return absl::UnavailableError(
      absl::StrCat(path_, " at byte ", ShownOffset(offset), ": ",
                   std::strerror(error), IsOutOfDescriptors(error) ? "; " : "",
                   IsOutOfDescriptors(error) ? DescriptorsHint() : ""));
}

absl::Status StoredFile::Lost(uint64_t offset, absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(path_, " at byte ", ShownOffset(offset), ": ", what));
}

}  // namespace parasol
