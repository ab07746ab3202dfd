#include "ml/input/format/whole_file.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/format/input_file.h"

namespace parasol {
namespace {

constexpr size_t kMinGrowth = 1 << 20;
constexpr size_t kMaxFirstBytes = 1 << 30;
constexpr size_t kMaxFileBytes = size_t{1} << 40;

absl::Status TooLarge(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": more than ", kMaxFileBytes, " bytes"));
}

absl::StatusOr<std::string> ReadAll(const std::string& path, InputFile& file) {
  const size_t stored = file.stored_bytes();
  if (stored > kMaxFileBytes) return TooLarge(path);
  std::string bytes;
  // A plain file is read in one go, in which its end shows.
  bytes.resize(file.is_packed() ? std::min(stored + 1, kMaxFirstBytes)
                                : stored + 1);
  size_t filled = 0;
  while (true) {
    ASSIGN_OR_RETURN(
        const size_t n,
        file.Read(absl::MakeSpan(
            reinterpret_cast<uint8_t*>(bytes.data()) + filled,  // NOLINT
            bytes.size() - filled)));
    filled += n;
    if (filled < bytes.size()) break;
    if (filled >= kMaxFileBytes) return TooLarge(path);
    bytes.resize(filled + std::max(kMinGrowth, filled / 2));
  }
  bytes.resize(filled);
  // To shrink is to copy, and to hold the file twice meanwhile.
  if (bytes.capacity() - filled > filled / 4) bytes.shrink_to_fit();
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  try {
    return ReadAll(path, *file);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": no memory for its bytes"));
  }
}

}  // namespace parasol
