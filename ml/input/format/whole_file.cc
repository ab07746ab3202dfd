#include "ml/input/format/whole_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/file/available_memory.h"
#include "ml/input/file/input_file.h"

namespace parasol {
namespace {

constexpr size_t kMinGrowth = 1 << 20;
constexpr size_t kMaxFirstBytes = 1 << 30;
constexpr size_t kMaxFileBytes = size_t{1} << 40;
// Files below it are taken without asking the system.
constexpr size_t kSmallBytes = 16 << 20;

absl::Status TooLarge(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": more than ", kMaxFileBytes,
                   " bytes, the most that a file may have; split it"));
}

absl::Status Resize(const std::string& path, size_t size, std::string& bytes) {
  if (size > kMaxFileBytes) return TooLarge(path);
  if (size > kSmallBytes && size > bytes.capacity()) {
    RETURN_IF_ERROR(CheckFitsMemory(path, size, AvailableMemory()));
  }
  bytes.resize(size);
  return absl::OkStatus();
}

absl::StatusOr<FileStart> ReadUpTo(const std::string& path, size_t max_bytes,
                                   InputFile& file) {
  const size_t stored = file.stored_bytes();
  if (stored > kMaxFileBytes && max_bytes > kMaxFileBytes) {
    return TooLarge(path);
  }
  // One more byte shows whether the file goes on.
  const size_t most = max_bytes < std::numeric_limits<size_t>::max()
                          ? max_bytes + 1
                          : max_bytes;
  std::string bytes;
  // A plain file is read in one go, in which its end shows.
  RETURN_IF_ERROR(Resize(
      path,
      std::min(most, file.is_packed() ? std::min(stored + 1, kMaxFirstBytes)
                                      : stored + 1),
      bytes));
  size_t filled = 0;
  while (true) {
    ASSIGN_OR_RETURN(
        const size_t n,
        file.Read(absl::MakeSpan(
            reinterpret_cast<uint8_t*>(bytes.data()) + filled,  // NOLINT
            bytes.size() - filled)));
    filled += n;
    if (filled < bytes.size() || filled == most) break;
    RETURN_IF_ERROR(
        Resize(path, std::min(most, filled + std::max(kMinGrowth, filled / 2)),
               bytes));
  }
  const bool is_whole = filled <= max_bytes;
  bytes.resize(std::min(filled, max_bytes));
  // To shrink is to copy, and to hold the file twice meanwhile.
  if (bytes.capacity() - bytes.size() > bytes.size() / 4) {
    bytes.shrink_to_fit();
  }
  return FileStart{.bytes = std::move(bytes), .is_whole = is_whole};
}

}  // namespace

absl::Status CheckFitsMemory(const std::string& path, size_t bytes,
                             std::optional<int64_t> available) {
  if (!available.has_value() ||
      bytes <= static_cast<size_t>(std::max<int64_t>(0, *available))) {
    return absl::OkStatus();
  }
  constexpr int kMebiShift = 20;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": needs at least ", bytes >> kMebiShift, " MiB of memory",
      ", of which ", *available >> kMebiShift,
      " MiB are free (it is held in memory, unpacked); use a machine "
      "or a limit with more, or less data"));
}

absl::StatusOr<FileStart> ReadFileStart(const std::string& path,
                                        size_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  try {
    return ReadUpTo(path, max_bytes, *file);
  } catch (const std::bad_alloc&) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": no memory for its bytes; use a machine with more memory"));
  }
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  ASSIGN_OR_RETURN(FileStart start,
                   ReadFileStart(path, std::numeric_limits<size_t>::max()));
  return std::move(start.bytes);
}

}  // namespace parasol
