#include "storage/tensor_files/npz_reader.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/zip_reader.h"

namespace parasol {
namespace {

constexpr absl::string_view kSuffix = ".npy";

class NpzReader : public TensorReader {
 public:
  NpzReader(std::string path, ZipReader archive)
      : path_(std::move(path)), archive_(std::move(archive)) {}

  absl::Status ReadHeaders() {
    std::set<std::string> names;
    for (size_t i = 0; i < archive_.members().size(); ++i) {
      const std::string& name = archive_.members()[i].name;
      if (!absl::EndsWith(name, kSuffix)) continue;
      if (!names.insert(name).second) {
        return absl::DataLossError(
            absl::StrCat(path_, ": has two members ", name));
      }
      RETURN_IF_ERROR(AddTensor(i)) << path_ << ": member " << name;
      archive_.Release(i);
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    const auto& [member, data] = places_[tensor];
    return archive_.Read(member, data + first, out);
  }

  absl::StatusOr<std::optional<uint64_t>> OffsetInFile(size_t tensor) override {
    const auto& [member, data] = places_[tensor];
    ASSIGN_OR_RETURN(std::optional<uint64_t> offset,
                     archive_.OffsetInFile(member));
    if (offset.has_value()) *offset += data;
    return offset;
  }

 private:
  // A tensor's member, and the first byte of its elements there.
  struct Place {
    size_t member = 0;
    uint64_t data = 0;
  };

  absl::Status AddTensor(size_t member) {
    const auto& [name, size] = archive_.members()[member];
    ASSIGN_OR_RETURN(
        NpyArray array,
        ReadNpyHeader(size, [&](uint64_t offset, absl::Span<char> out) {
          return archive_.Read(member, offset, out);
        }));
    array.tensor.name = std::string(absl::StripSuffix(name, kSuffix));
    tensors_.push_back(std::move(array.tensor));
    places_.push_back({.member = member, .data = array.data});
    return absl::OkStatus();
  }

  const std::string path_;
  ZipReader archive_;
  std::vector<TensorInfo> tensors_;
  std::vector<Place> places_;  // order of `tensors_`
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenNpz(const std::string& path) {
  ASSIGN_OR_RETURN(ZipReader archive, ZipReader::Open(path));
  auto reader = std::make_unique<NpzReader>(path, std::move(archive));
  RETURN_IF_ERROR(reader->ReadHeaders());
  return reader;
}

}  // namespace parasol
