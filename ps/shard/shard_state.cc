#include "ps/shard/shard_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ps/shard/write_shard.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr char kMemory[] = "/dev/shm";
constexpr absl::string_view kPrefix = "parasol-shard.";
// Guesses: arrays of a variable, and bytes of all rows of tables.
constexpr uint64_t kGuessedArrays = 3;
constexpr uint64_t kGuessedRowBytes = uint64_t{1} << 30;
constexpr absl::string_view kFileName = "shard.sst";
// Folders that are made until one is kept.
constexpr int kMaxFolders = 100;

// Returns true if twice as much fits: the size is a guess.
bool HasRoom(const char* directory, uint64_t bytes) {
  struct statvfs disk;
  if (statvfs(directory, &disk) != 0) return false;
  return uint64_t{disk.f_bavail} * disk.f_frsize / 2 >= bytes;
}

std::string TemporaryFolder() {
  const char* const named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

std::string ParentFor(uint64_t bytes) {
  return HasRoom(kMemory, bytes) ? kMemory : TemporaryFolder();
}

// Removes the folder unless a process has it locked.
void RemoveIfStale(const std::string& path) {
  const absl::StatusOr<FileDescriptor> folder =
      FileDescriptor::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.ok() || flock(folder->get(), LOCK_EX | LOCK_NB) != 0) return;
  const absl::Status removed = RemoveTree(path);
  if (!removed.ok()) LOG(WARNING) << removed.message();
}

// Locks a new folder, which RemoveStale() of another process may take for a
// stale one before. Returns false if it has.
bool IsKept(const FileDescriptor& folder, const std::string& path) {
  const int locked = flock(folder.get(), LOCK_EX | LOCK_NB);
  if (locked != 0 && errno == EWOULDBLOCK) return false;
  struct stat own, named;
  return fstat(folder.get(), &own) == 0 && stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino;
}

// A folder or file that is not there, or has gone, is none of a standby's.
absl::Status NotGone(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::UnavailableError(status.message())
                                  : status;
}

absl::Status WriteAll(int file, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardState> ShardState::Create(const wire::LoadRequest& order) {
  uint64_t elements = 0;
  for (const wire::PartSpec& part : order.part()) {
    elements += static_cast<uint64_t>(part.elements());
  }
  return MakeFor(kGuessedArrays * sizeof(float) * elements +
                 (order.table().empty() ? 0 : kGuessedRowBytes));
}

absl::StatusOr<ShardState> ShardState::MakeFor(uint64_t bytes) {
  const std::string pattern =
      absl::StrCat(ParentFor(bytes), "/", kPrefix, "XXXXXX");
  for (int i = 0; i < kMaxFolders; ++i) {
    std::string name = pattern;
    if (mkdtemp(name.data()) == nullptr) {
      return NotGone(FileError(errno, "make a folder", name));
    }
    absl::StatusOr<FileDescriptor> folder =
        FileDescriptor::Open(name, O_RDONLY | O_DIRECTORY);
    if (!folder.ok() && !absl::IsNotFound(folder.status())) {
      return folder.status();
    }
    if (!folder.ok() || !IsKept(*folder, name)) continue;
    return ShardState(std::move(name), std::make_unique<const FileDescriptor>(
                                           *std::move(folder)));
  }
  return absl::UnavailableError(absl::StrCat("can't make a folder ", pattern,
                                             ": ", kMaxFolders,
                                             " of them were removed at once"));
}

absl::StatusOr<ShardState> ShardState::Write(ShardSnapshot snapshot,
                                             uint32_t shard,
                                             uint32_t num_shards,
                                             uint64_t bytes) {
  ASSIGN_OR_RETURN(ShardState state, MakeFor(bytes));
  const absl::StatusOr<durable::CheckpointFile> file =
      WriteShard(std::move(snapshot), shard, num_shards, state.path());
  if (!file.ok()) return NotGone(file.status());
  state.size_ = file->bytes();
  state.crc_ = file->crc32c();
  return state;
}

void ShardState::RemoveStale() {
  for (const std::string& parent : {std::string(kMemory), TemporaryFolder()}) {
    const auto names = ListDirectory(parent);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (!absl::StartsWith(name, kPrefix)) continue;
      RemoveIfStale(absl::StrCat(parent, "/", name));
    }
  }
}

ShardState::ShardState(std::string directory,
                       std::unique_ptr<const FileDescriptor> folder)
    : directory_(std::move(directory)), folder_(std::move(folder)) {}

ShardState::ShardState(ShardState&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      folder_(std::move(other.folder_)),
      file_(std::move(other.file_)),
      size_(other.size_),
      crc_(other.crc_),
      in_journal_(other.in_journal_) {}

ShardState::~ShardState() {
  if (directory_.empty()) return;
  const absl::Status removed = RemoveTree(directory_);
  if (!removed.ok()) LOG(WARNING) << removed.message();
}

std::string ShardState::path() const {
  return absl::StrCat(directory_, "/", kFileName);
}

absl::Status ShardState::Append(absl::string_view bytes) {
  if (file_ == nullptr) {
    absl::StatusOr<FileDescriptor> file =
        FileDescriptor::Open(path(), O_WRONLY | O_CREAT | O_EXCL);
    if (!file.ok()) return NotGone(file.status());
    file_ = std::make_unique<const FileDescriptor>(*std::move(file));
  }
  RETURN_IF_ERROR(WriteAll(file_->get(), bytes, path()));
  size_ += bytes.size();
  crc_ = ExtendCrc32c(crc_, bytes);
  return absl::OkStatus();
}

absl::Status ShardState::ForEachPiece(
    absl::FunctionRef<absl::Status(absl::string_view)> visit) const {
  const absl::StatusOr<FileDescriptor> file =
      FileDescriptor::OpenForReading(path());
  if (!file.ok()) return NotGone(file.status());
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const ssize_t got = read(file->get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return NotGone(ReadError(errno, "read", path()));
    if (got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(visit(absl::string_view(piece).substr(0, got)));
  }
}

absl::Status ShardState::MakeCheckpoint(durable::CheckpointManifest manifest) {
  file_.reset();
  durable::CheckpointFile& file = *manifest.add_file();
  file.set_name(std::string(kFileName));
  file.set_bytes(size_);
  file.set_crc32c(crc_);
  manifest.set_format_version(kFormatVersion);
  return WriteFileDurably(absl::StrCat(directory_, "/", kManifestName),
                          EncodeManifest(manifest));
}

}  // namespace parasol
