#include "ml/input/object/stored_object.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/parallel_calls.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status StoredObject::ReadAll(size_t piece_bytes, size_t threads,
                                   Sink sink) const {
  const uint64_t pieces = (bytes() + piece_bytes - 1) / piece_bytes;
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> has_failed = false;
  const auto read_piece = [&](uint64_t offset,
                              std::string& piece) -> absl::Status {
    piece.resize(std::min<uint64_t>(piece_bytes, bytes() - offset));
    RETURN_IF_ERROR(Read(offset, absl::MakeSpan(piece)));
    return sink(offset, piece);
  };
  threads = std::clamp<uint64_t>(pieces, 1, threads);
  return ParallelCalls(threads).Run([&](size_t) -> absl::Status {
    std::string piece;
    for (uint64_t i = next++; i < pieces && !has_failed; i = next++) {
      const absl::Status status = read_piece(i * piece_bytes, piece);
      if (!status.ok()) has_failed = true;
      RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  });
}

absl::Status StoredObject::Changed(uint64_t bytes_now) const {
  return absl::DataLossError(
      absl::StrCat(OneLine(uri()),
                   ": the object has changed since it was opened, when it "
                   "had ",
                   bytes(), " bytes (now ", bytes_now,
                   "); leave data as they are while they are read"));
}

absl::Status StoredObject::Gone() const {
  return absl::DataLossError(
      absl::StrCat(OneLine(uri()),
                   ": the object is gone, and was there when it was "
                   "opened; leave data as they are while they are read"));
}

}  // namespace parasol
