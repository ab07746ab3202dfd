#include "ml/input/file/stored_files.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/file/input_file.h"
#include "ml/input/file/set_memory.h"

namespace parasol {

absl::StatusOr<StoredFile> StoredFiles::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  if (!file->is_packed()) return OpenPlain(path);
  constexpr size_t kPieceBytes = 1 << 20;
  std::vector<uint8_t> piece(kPieceBytes);
  for (size_t n = kPieceBytes; n == kPieceBytes;) {
    ASSIGN_OR_RETURN(n, file->Read(absl::MakeSpan(piece)));
    RETURN_IF_ERROR(
        Unpack({reinterpret_cast<const char*>(piece.data()), n}))  // NOLINT
        << path;
  }
  return TakeUnpacked(path);
}

absl::StatusOr<StoredFile> StoredFiles::OpenPlain(const std::string& path) {
  return StoredFile::Open(path, KeepsDescriptor(plain_files_++));
}

absl::Status StoredFiles::Unpack(absl::string_view bytes) {
  if (unpacked_ == nullptr) {
    ASSIGN_OR_RETURN(TemporaryFile made, TemporaryFile::Create());
    unpacked_ = std::make_shared<TemporaryFile>(std::move(made));
  }
  return unpacked_->Append(bytes);
}

StoredFile StoredFiles::TakeUnpacked(std::string path) {
  const uint64_t begin = std::exchange(taken_, unpacked_->size());
  return StoredFile::Unpacked(std::move(path), unpacked_, begin);
}

}  // namespace parasol
