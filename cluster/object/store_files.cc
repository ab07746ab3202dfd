#include "cluster/object/store_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/parallel_calls.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"

namespace parasol {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;
constexpr size_t kPiecesAtOnce = 8;
// Files that change while they are read are small and change seldom.
constexpr int kMostVersions = 5;
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr int kMostDoublings = 5;

absl::Status CantRead(const std::string& local, int code) {
  return absl::UnavailableError(
      absl::StrCat("can't read ", local, ": ", std::strerror(code)));
}

absl::Status ReadLocal(int descriptor, const std::string& local,
                       uint64_t offset, absl::Span<char> out) {
  while (!out.empty()) {
    const ssize_t got =
        pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CantRead(local, errno);
    if (got == 0) {
      return absl::DataLossError(
          absl::StrCat(local, ": was cut off while it was sent"));
    }
    out.remove_prefix(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

ObjectStore::Source SourceOf(absl::string_view bytes) {
  return {.bytes = bytes.size(),
          .read = [bytes](uint64_t offset, absl::Span<char> out) {
            std::copy_n(bytes.data() + offset, out.size(), out.data());
            return absl::OkStatus();
          }};
}

absl::StatusOr<std::string> ReadStart(const StoredObject& object,
                                      size_t max_bytes) {
  std::string bytes(std::min<uint64_t>(object.bytes(), max_bytes + 1), '\0');
  if (!bytes.empty()) {
    RETURN_IF_ERROR(object.Read(0, absl::MakeSpan(bytes)));
  }
  RETURN_IF_ERROR(object.CheckIsSame());
  return bytes;
}

}  // namespace

absl::StatusOr<StoreFiles::Place> StoreFiles::PlaceOf(
    const std::string& uri) const {
  ASSIGN_OR_RETURN(ObjectUri parts, ParseObjectUri(uri));
  if (parts.scheme != "s3" && parts.scheme != "gs") {
    return absl::InvalidArgumentError(absl::StrCat(
        OneLine(uri), ": checkpoints are not kept in ", parts.scheme,
        "://, where a file can be seen before it is whole; name s3://, gs:// "
        "or a folder"));
  }
  Place place;
  ASSIGN_OR_RETURN(place.store, ObjectStore::Open(parts, clock_));
  place.path = std::move(parts.path);
  return place;
}

absl::StatusOr<std::vector<RemoteFiles::Entry>> StoreFiles::ListAll(
    const std::string& folder) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(folder));
  ASSIGN_OR_RETURN(const std::vector<ObjectEntry> objects,
                   place.store->List(place.path, ObjectStore::Depth::kAll));
  const std::string prefix = absl::StrCat(place.path, "/");
  std::vector<Entry> entries;
  for (const ObjectEntry& object : objects) {
    absl::string_view name = object.path;
    if (object.is_folder || !absl::ConsumePrefix(&name, prefix)) continue;
    entries.push_back({.name = std::string(name), .bytes = object.bytes});
  }
  return entries;
}

absl::StatusOr<RemoteFiles::About> StoreFiles::Look(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  ASSIGN_OR_RETURN(const auto object, place.store->OpenObject(place.path));
  return About{.bytes = object->bytes(), .version = object->version()};
}

absl::StatusOr<std::string> StoreFiles::Read(const std::string& path,
                                             size_t max_bytes) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  for (int version = 1;; ++version) {
    ASSIGN_OR_RETURN(const auto object, place.store->OpenObject(place.path));
    absl::StatusOr<std::string> bytes = ReadStart(*object, max_bytes);
    if (!absl::IsDataLoss(bytes.status())) return bytes;
    if (version < kMostVersions) continue;
    return absl::UnavailableError(
        absl::StrCat(OneLine(path), ": changes each time that it is read"));
  }
}

absl::Status StoreFiles::ReadPieces(const std::string& path, uint64_t bytes,
                                    VisitPiece visit) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  ASSIGN_OR_RETURN(const auto object, place.store->OpenObject(place.path));
  if (object->bytes() != bytes) {
    return absl::DataLossError(absl::StrCat(OneLine(path), ": has ",
                                            object->bytes(),
                                            " bytes, should have ", bytes));
  }
  const uint64_t pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> has_failed = false;
  const auto read = [&](uint64_t i, std::string& piece) -> absl::Status {
    const uint64_t offset = i * kPieceBytes;
    piece.resize(std::min(kPieceBytes, bytes - offset));
    RETURN_IF_ERROR(object->Read(offset, absl::MakeSpan(piece)));
    return visit(offset, piece);
  };
  RETURN_IF_ERROR(ParallelCalls(std::clamp<uint64_t>(pieces, 1, kPiecesAtOnce))
                      .Run([&](size_t) -> absl::Status {
                        std::string piece;
                        for (uint64_t i = next++; i < pieces && !has_failed;
                             i = next++) {
                          const absl::Status status = read(i, piece);
                          if (!status.ok()) has_failed = true;
                          RETURN_IF_ERROR(status);
                        }
                        return absl::OkStatus();
                      }));
  return object->CheckIsSame();
}

absl::Status StoreFiles::Write(const std::string& path,
                               absl::string_view bytes) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  return place.store->Write(place.path, SourceOf(bytes));
}

absl::Status StoreFiles::WriteOnce(const std::string& path,
                                   absl::string_view bytes) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  const absl::Status written =
      place.store->WriteOnce(place.path, SourceOf(bytes));
  // The caller tries again, and knows why it may not.
  if (absl::IsUnavailable(written)) LOG(WARNING) << written.message();
  return written;
}

absl::Status StoreFiles::Upload(const std::string& local,
                                const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  const Descriptor file(open(local.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return CantRead(local, errno);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return CantRead(local, errno);
  return place.store->Write(
      place.path, {.bytes = static_cast<uint64_t>(about.st_size),
                   .read = [&](uint64_t offset, absl::Span<char> out) {
                     return ReadLocal(file.get(), local, offset, out);
                   }});
}

absl::Status StoreFiles::Remove(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(path));
  return place.store->Remove(place.path);
}

absl::Status StoreFiles::RemoveFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(folder));
  return place.store->RemoveFolder(place.path);
}

void StoreFiles::Pause(int attempt) {
  clock_.Pause(kFirstPause * (1 << std::min(attempt - 1, kMostDoublings)));
}

absl::StatusOr<std::string> StoreFiles::LocalFolder() {
  return ObjectCache::OfProcess().Directory();
}

void UseObjectStores() {
  static auto* const files = new StoreFiles;
  UseRemoteFiles(files);
}

}  // namespace parasol
