#include "storage/remote/remote_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/crc32c.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

std::atomic<RemoteFiles*> files_of_process = nullptr;

constexpr absl::string_view kScratchPrefix = "checkpoint-files-";
constexpr int kMostFolders = 10;
constexpr size_t kMostAppended = size_t{128} << 20;
constexpr int kMostRewrites = 8;

absl::Status SystemError(int code, const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(code));
  return code == ENOSPC || code == EDQUOT || code == EMFILE || code == ENFILE ||
                 code == ENOLCK
             ? absl::ResourceExhaustedError(text)
             : absl::UnavailableError(text);
}

// Opens a folder and locks it; not open if another process has it.
absl::StatusOr<Descriptor> LockFolder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() && errno == ENOENT) return Descriptor();
  if (!folder.is_open()) return SystemError(errno, path);
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Descriptor();
    return SystemError(errno, path);
  }
  // Whoever removes abandoned ones may have been here before the lock was.
  struct stat locked;
  struct stat named;
  if (fstat(folder.get(), &locked) != 0 || stat(path.c_str(), &named) != 0 ||
      locked.st_ino != named.st_ino) {
    return Descriptor();
  }
  return folder;
}

// Removes folders of processes that were killed. One that can't be removed is
// in nobody's way.
void RemoveAbandoned(const std::string& parent) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(parent, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (absl::StartsWith(entry->path().filename().string(), kScratchPrefix)) {
      found.push_back(entry->path().string());
    }
  }
  for (const std::string& path : found) {
    const absl::StatusOr<Descriptor> lock = LockFolder(path);
    if (lock.ok() && lock->is_open()) fs::remove_all(path, error);
  }
}

// What was appended to files and is not written yet.
struct Appended {
  // Content that a file has if an attempt was done whose answer was lost.
  struct Doubt {
    size_t bytes = 0;
    uint32_t crc = 0;
    size_t kept = 0;  // bytes that were kept in memory until then

    bool IsOf(absl::string_view content) const {
      return content.size() == bytes && Crc32cOf(content) == crc;
    }
  };
  struct Bytes {
    std::string bytes;
    bool as_line = false;
    std::optional<Doubt> doubt = {};
  };
  absl::Mutex mu;
  std::map<std::string, Bytes> by_path ABSL_GUARDED_BY(mu);
};

Appended& AppendedOfProcess() {
  static auto* const appended = new Appended;
  return *appended;
}

// Returns what is kept of a file of this content, without what an attempt has
// written all the same; says whether there is such an attempt.
Appended::Bytes TakeStock(const std::string& path, absl::string_view content,
                          bool& was_written) {
  Appended& appended = AppendedOfProcess();
  const absl::MutexLock lock(&appended.mu);
  Appended::Bytes& kept = appended.by_path[path];
  was_written = kept.doubt && kept.doubt->IsOf(content);
  if (was_written) {
    kept.bytes.erase(0, kept.doubt->kept);
    kept.doubt.reset();
  }
  return kept;
}

// Notes what an attempt leaves of `kept` bytes: nothing without a doubt.
void NoteAttempt(const std::string& path, size_t kept,
                 const std::optional<Appended::Doubt>& doubt) {
  Appended& appended = AppendedOfProcess();
  const absl::MutexLock lock(&appended.mu);
  Appended::Bytes& bytes = appended.by_path[path];
  bytes.doubt = doubt;
  if (!doubt) bytes.bytes.erase(0, kept);
}

struct Addition {
  std::string path;
  absl::string_view bytes;
  bool as_line = false;
};

// Appends what is kept in memory, and the addition behind it, to `content`.
absl::Status AddTo(std::string& content, Appended::Bytes kept,
                   const Addition& addition) {
  if (kept.bytes.empty()) kept.as_line = addition.as_line;
  absl::StrAppend(&kept.bytes, addition.bytes);
  if (content.size() + kept.bytes.size() > kMostAppended) {
    return absl::ResourceExhaustedError(
        absl::StrCat(addition.path, ": has more than ", kMostAppended,
                     " bytes; give it another name"));
  }
  const bool is_cut_off =
      kept.as_line && !content.empty() && content.back() != '\n';
  absl::StrAppend(&content, is_cut_off ? "\n" : "", kept.bytes);
  return absl::OkStatus();
}

// Rewrites a file with what is kept of it in memory and the addition.
absl::Status Rewrite(const Addition& addition, MayWrite may_write) {
  const std::string& path = addition.path;
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<std::string> content = files->Read(path, kMostAppended);
    if (absl::IsNotFound(content.status())) content = std::string();
    RETURN_IF_ERROR(content.status());
    bool was_written = false;
    const Appended::Bytes kept = TakeStock(path, *content, was_written);
    // By the attempt before, whose answer was lost.
    if (was_written && attempt > 1) return absl::OkStatus();
    const size_t before = content->size();
    RETURN_IF_ERROR(AddTo(*content, kept, addition));
    if (content->size() == before) return absl::OkStatus();
    RETURN_IF_ERROR(may_write());
    const absl::Status written = files->WriteOnce(path, *content);
    std::optional<Appended::Doubt> doubt;
    if (!written.ok()) {
      doubt = {.bytes = content->size(),
               .crc = Crc32cOf(*content),
               .kept = kept.bytes.size()};
    }
    NoteAttempt(path, kept.bytes.size(), doubt);
    if (!absl::IsUnavailable(written) || attempt == kMostRewrites) {
      return written;
    }
    files->Pause(attempt);
  }
}

}  // namespace

void UseRemoteFiles(RemoteFiles* files) { files_of_process = files; }

absl::StatusOr<RemoteFiles*> RemoteFilesFor(const std::string& path) {
  RemoteFiles* const files = files_of_process;
  if (files != nullptr) return files;
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": this program uses no object stores; name a folder"));
}

absl::StatusOr<std::unique_ptr<LocalScratch>> LocalScratch::Make(
    const std::string& path) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  ASSIGN_OR_RETURN(const std::string parent, files->LocalFolder());
  RemoveAbandoned(parent);
  for (int attempt = 1; attempt <= kMostFolders; ++attempt) {
    std::string name = absl::StrCat(parent, "/", kScratchPrefix, "XXXXXX");
    if (mkdtemp(name.data()) == nullptr) return SystemError(errno, name);
    absl::StatusOr<Descriptor> lock = LockFolder(name);
    if (!lock.ok()) {
      rmdir(name.c_str());
      return lock.status();
    }
    if (!lock->is_open()) continue;
    return std::unique_ptr<LocalScratch>(
        new LocalScratch(std::move(name), lock->Release()));
  }
  return absl::UnavailableError(absl::StrCat(
      parent, ": others remove or lock each folder that is made there, ",
      kMostFolders, " by now: let this program alone write in it"));
}

LocalScratch::~LocalScratch() {
  std::error_code error;
  fs::remove_all(path_, error);
  close(lock_);
}

absl::Status BringFile(const std::string& path, uint64_t bytes,
                       const std::string& local) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  constexpr mode_t kOwnersOnly = 0600;
  const Descriptor file(open(
      local.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnersOnly));
  if (!file.is_open()) return SystemError(errno, local);
  // Errors of a full disk come before the bytes do.
  const int reserved =
      bytes == 0 ? 0 : fallocate(file.get(), 0, 0, static_cast<off_t>(bytes));
  if (reserved != 0 && (errno == ENOSPC || errno == EDQUOT)) {
    return SystemError(errno, local);
  }
  return files->ReadPieces(
      path, bytes,
      [&](uint64_t offset, absl::string_view piece) -> absl::Status {
        while (!piece.empty()) {
          const ssize_t written = pwrite(file.get(), piece.data(), piece.size(),
                                         static_cast<off_t>(offset));
          if (written < 0 && errno == EINTR) continue;
          if (written < 0) return SystemError(errno, local);
          piece.remove_prefix(static_cast<size_t>(written));
          offset += static_cast<uint64_t>(written);
        }
        return absl::OkStatus();
      });
}

absl::Status AppendRemote(const std::string& path, absl::string_view bytes,
                          bool as_line, bool is_durable, MayWrite may_write) {
  if (is_durable) {
    return Rewrite({.path = path, .bytes = bytes, .as_line = as_line},
                   may_write);
  }
  RETURN_IF_ERROR(RemoteFilesFor(path).status());
  Appended& appended = AppendedOfProcess();
  const absl::MutexLock lock(&appended.mu);
  Appended::Bytes& kept = appended.by_path[path];
  if (kept.bytes.size() + bytes.size() > kMostAppended) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": ", kept.bytes.size(),
        " bytes can't be written there yet, and no more are kept"));
  }
  if (kept.bytes.empty()) kept.as_line = as_line;
  absl::StrAppend(&kept.bytes, bytes);
  return absl::OkStatus();
}

absl::Status FlushRemote(const std::string& path, MayWrite may_write) {
  {
    Appended& appended = AppendedOfProcess();
    const absl::MutexLock lock(&appended.mu);
    const auto kept = appended.by_path.find(path);
    if (kept == appended.by_path.end() || kept->second.bytes.empty()) {
      return absl::OkStatus();
    }
  }
  return Rewrite({.path = path, .bytes = ""}, may_write);
}

}  // namespace parasol
