#include "storage/tensor_files/keras/hdf5_bytes.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// What is read of the smallest file: prefixes of headers are read twice.
constexpr uint64_t kMinMetadataBytes = 4096;

}  // namespace

absl::Status DamagedHdf5(uint64_t byte, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("is no whole HDF5 file: byte ", byte, ": ", what));
}

Hdf5Bytes::Hdf5Bytes(uint64_t size, Hdf5Read read)
    : size_(size), read_(read), left_(2 * size + kMinMetadataBytes) {}

absl::StatusOr<std::string> Hdf5Bytes::Read(uint64_t offset, uint64_t count) {
  if (offset > size_ || count > size_ - offset) {
    return DamagedHdf5(offset, absl::StrCat(count,
                                            " bytes are said to follow, "
                                            "but it ends at ",
                                            size_));
  }
  if (count > left_) {
    return DamagedHdf5(offset, "its parts overlap, or contain each other");
  }
  left_ -= count;
  std::string bytes(count, '\0');
  RETURN_IF_ERROR(read_(offset, absl::MakeSpan(bytes)));
  return bytes;
}

uint64_t Hdf5Fields::Number(size_t bytes) {
  const absl::string_view text = Text(bytes);
  uint64_t number = 0;
  std::memcpy(&number, text.data(), text.size());
  return number;
}

absl::string_view Hdf5Fields::Text(size_t bytes) {
  if (bytes > left()) {
    ok_ = false;
    place_ = bytes_.size();
    return "";
  }
  const absl::string_view text = bytes_.substr(place_, bytes);
  place_ += bytes;
  return text;
}

}  // namespace parasol
