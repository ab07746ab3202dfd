#include "storage/tensor_files/npz_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
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

 private:
  // A tensor's member, and the first byte of its elements there.
  struct Place {
    size_t member = 0;
    uint64_t data = 0;
  };

  absl::Status AddTensor(size_t member) {
    const uint64_t size = archive_.members()[member].size;
    std::string header(std::min<uint64_t>(size, kNpyPrefixBytes), '\0');
    RETURN_IF_ERROR(archive_.Read(member, 0, absl::MakeSpan(header)));
    ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(header));
    const size_t prefix_bytes = header.size();
    header.resize(header_bytes);
    RETURN_IF_ERROR(archive_.Read(
        member, prefix_bytes, absl::MakeSpan(header).subspan(prefix_bytes)));
    ASSIGN_OR_RETURN(TensorInfo info, ParseNpyHeader(header));
    info.name = std::string(
        absl::StripSuffix(archive_.members()[member].name, kSuffix));
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info));
    if (info.type != ElementType::kOther && bytes != size - header_bytes) {
      return absl::DataLossError(absl::StrCat("has ", size - header_bytes,
                                              " bytes for the shape ",
                                              ShapeText(info.shape)));
    }
    tensors_.push_back(std::move(info));
    places_.push_back({.member = member, .data = header_bytes});
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
