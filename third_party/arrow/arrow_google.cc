#include "arrow_google.h"

#include <arrow/util/io_util.h>

#include <cerrno>
#include <set>
#include <utility>

namespace {

using arrow::Result;
using arrow::Status;

// By default Google's library tries again for a quarter of an hour, and says
// nothing. It has to have time to begin.
constexpr char kOneAttempt[] = "retry_limit_seconds=0.1";
constexpr char kPartsSeconds[] = "retry_limit_seconds=10";

// Bytes that are sent before it is known that nobody wants them.
constexpr int64_t kManyBytes = 1 << 20;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

Result<arrow::fs::FileInfoVector> ListFiles(arrow::fs::FileSystem& store,
                                            const std::string& folder,
                                            bool is_deep) {
  arrow::fs::FileSelector selector;
  selector.base_dir = folder;
  selector.allow_not_found = true;
  selector.recursive = is_deep;
  return store.GetFileInfo(selector);
}

bool IsGoogleStore(std::string_view uri) { return uri.rfind("gs:", 0) == 0; }

Result<std::shared_ptr<arrow::fs::FileSystem>> OpenGoogleStore(
    const std::string& uri, bool retries_parts) {
  return arrow::fs::FileSystemFromUri(
      uri + (uri.find('?') == std::string::npos ? "?" : "&") +
      (retries_parts ? kPartsSeconds : kOneAttempt));
}

Result<arrow::fs::FileInfoVector> ListGoogleFolder(arrow::fs::FileSystem& store,
                                                   const std::string& folder) {
  ARROW_ASSIGN_OR_RAISE(const arrow::fs::FileInfoVector all,
                        ListFiles(store, folder, /*is_deep=*/true));
  arrow::fs::FileInfoVector found;
  std::set<std::string> folders;
  for (const arrow::fs::FileInfo& entry : all) {
    const std::string& path = entry.path();
    const size_t end = path.find('/', folder.size() + 1);
    if (end == std::string::npos && entry.IsFile()) {
      found.push_back(entry);
    } else if (folders.insert(path.substr(0, end)).second) {
      found.emplace_back(path.substr(0, end), arrow::fs::FileType::Directory);
    }
  }
  return found;
}

Result<arrow::fs::FileInfo> LookAtGoogle(arrow::fs::FileSystem& store,
                                         const std::string& path) {
  ARROW_ASSIGN_OR_RAISE(arrow::fs::FileInfo info, store.GetFileInfo(path));
  if (info.type() != arrow::fs::FileType::NotFound) return info;
  ARROW_ASSIGN_OR_RAISE(const arrow::fs::FileInfoVector below,
                        ListFiles(store, path, /*is_deep=*/true));
  if (!below.empty()) info.set_type(arrow::fs::FileType::Directory);
  return info;
}

Status RemoveGoogleFolder(arrow::fs::FileSystem& store,
                          const std::string& folder) {
  const Status removed = store.DeleteDir(folder);
  // One that is not there is that, an object that another request has removed
  // meanwhile, or the one that would stand for the folder; and then the others
  // may have failed.
  if (!removed.ok() && !Has(removed.message(), "(NOT_FOUND:") &&
      !Has(removed.message(), "No such directory")) {
    return removed;
  }
  ARROW_ASSIGN_OR_RAISE(const arrow::fs::FileInfoVector left,
                        ListFiles(store, folder, /*is_deep=*/true));
  if (left.empty()) return Status::OK();
  return Status::IOError("not all below the folder could be removed, as ",
                         left.front().path());
}

Status BeginGoogleObject(arrow::io::RandomAccessFile& object, int64_t bytes) {
  if (bytes == 0) return Status::OK();
  // The first call opens a stream of the whole object, without a lock, and
  // reading hides its errors.
  ARROW_RETURN_NOT_OK(object.Tell().status());
  // In its place one that has almost nothing: else the server sends, and waits
  // for somebody to read it, as long as the object is open.
  return bytes < kManyBytes ? Status::OK() : object.Seek(bytes - 1);
}

Status GoogleUpload::Close() {
  const Status closed = (*object_)->Close();
  delete object_;
  return closed;
}

void GoogleUpload::Leave() {
  // A stream that the store has ended makes nothing when it is closed.
  if ((*object_)->closed()) static_cast<void>(Close());
}
