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
#include <system_error>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

std::atomic<RemoteFiles*> files_of_process = nullptr;

constexpr absl::string_view kScratchPrefix = "checkpoint-files-";
constexpr size_t kMostAppended = size_t{128} << 20;

absl::Status SystemError(int code, const std::string& path) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(code));
  return code == ENOSPC || code == EDQUOT || code == EMFILE
             ? absl::ResourceExhaustedError(text)
             : absl::UnavailableError(text);
}

// Opens a folder and locks it; not open if another process has it.
Descriptor LockFolder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return Descriptor();
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
    const Descriptor lock = LockFolder(path);
    if (lock.is_open()) fs::remove_all(path, error);
  }
}

// What was appended to files and is not written yet.
struct Appended {
  struct Bytes {
    std::string bytes;
    bool as_line = false;
  };
  absl::Mutex mu;
  std::map<std::string, Bytes> by_path ABSL_GUARDED_BY(mu);
};

Appended& AppendedOfProcess() {
  static auto* const appended = new Appended;
  return *appended;
}

// Rewrites a file with what is kept of it in memory and `bytes` behind it.
absl::Status Rewrite(const std::string& path, absl::string_view bytes,
                     bool as_line) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  Appended& appended = AppendedOfProcess();
  Appended::Bytes kept;
  {
    const absl::MutexLock lock(&appended.mu);
    kept = appended.by_path[path];
  }
  absl::StatusOr<std::string> content = files->Read(path, kMostAppended);
  if (absl::IsNotFound(content.status())) content = std::string();
  RETURN_IF_ERROR(content.status());
  const size_t known = kept.bytes.size();
  if (known == 0) kept.as_line = as_line;
  absl::StrAppend(&kept.bytes, bytes);
  if (content->size() + kept.bytes.size() > kMostAppended) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has more than ", kMostAppended,
                     " bytes; give it another name"));
  }
  const bool is_cut_off =
      kept.as_line && !content->empty() && content->back() != '\n';
  absl::StrAppend(&*content, is_cut_off ? "\n" : "", kept.bytes);
  RETURN_IF_ERROR(files->Write(path, *content));
  const absl::MutexLock lock(&appended.mu);
  appended.by_path[path].bytes.erase(0, known);
  return absl::OkStatus();
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
  while (true) {
    std::string name = absl::StrCat(parent, "/", kScratchPrefix, "XXXXXX");
    if (mkdtemp(name.data()) == nullptr) return SystemError(errno, name);
    Descriptor lock = LockFolder(name);
    if (!lock.is_open()) continue;
    return std::unique_ptr<LocalScratch>(
        new LocalScratch(std::move(name), lock.Release()));
  }
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
                          bool as_line, bool is_durable) {
  if (is_durable) return Rewrite(path, bytes, as_line);
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

absl::Status FlushRemote(const std::string& path) {
  {
    Appended& appended = AppendedOfProcess();
    const absl::MutexLock lock(&appended.mu);
    const auto kept = appended.by_path.find(path);
    if (kept == appended.by_path.end() || kept->second.bytes.empty()) {
      return absl::OkStatus();
    }
  }
  return Rewrite(path, "", /*as_line=*/false);
}

}  // namespace parasol
