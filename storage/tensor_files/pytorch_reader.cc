#include "storage/tensor_files/pytorch_reader.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/tensor_files/pickled_tensors.h"
#include "storage/tensor_files/zip_reader.h"

namespace parasol {
namespace {

constexpr absl::string_view kPickle = "/data.pkl";
constexpr uint64_t kMaxPickleBytes = 64 << 20;

class PyTorchReader : public TensorReader {
 public:
  PyTorchReader(const std::string& path, ZipReader archive)
      : path_(path), archive_(std::move(archive)) {
    for (size_t i = 0; i < archive_.members().size(); ++i) {
      by_name_.emplace(archive_.members()[i].name, i);
    }
  }

  absl::Status ReadPickle() {
    const std::string root = Root();
    RETURN_IF_ERROR(CheckByteOrder(root));
    ASSIGN_OR_RETURN(const std::string pickle,
                     ReadMember(absl::StrCat(root, kPickle), kMaxPickleBytes));
    ASSIGN_OR_RETURN(const std::vector<PickledTensor> tensors,
                     PickledTensors(pickle), _ << path_);
    for (const PickledTensor& tensor : tensors) {
      RETURN_IF_ERROR(AddTensor(root, tensor)) << path_;
    }
    if (!tensors.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_,
                     ": has no tensors by name; write those of a model with "
                     "torch.save(model.state_dict(), PATH)"));
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    const Place& place = places_[tensor];
    return archive_.Read(place.member, place.data + first, out);
  }

 private:
  // A tensor's storage, and its first byte there.
  struct Place {
    size_t member = 0;
    uint64_t data = 0;
  };

  // The directory in which all members are.
  std::string Root() const {
    for (const ZipReader::Member& member : archive_.members()) {
      absl::string_view root = member.name;
      if (absl::ConsumeSuffix(&root, kPickle)) return std::string(root);
    }
    return "";
  }

  absl::StatusOr<std::string> ReadMember(const std::string& name,
                                         uint64_t max_bytes) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end() ||
        archive_.members()[found->second].size > max_bytes) {
      return absl::DataLossError(absl::StrCat(
          path_, ": is nothing that torch.save() has written: there is no ",
          name, " of at most ", max_bytes, " bytes"));
    }
    std::string bytes(archive_.members()[found->second].size, '\0');
    RETURN_IF_ERROR(archive_.Read(found->second, 0, absl::MakeSpan(bytes)));
    return bytes;
  }

  absl::Status CheckByteOrder(const std::string& root) {
    const std::string name = absl::StrCat(root, "/byteorder");
    if (!by_name_.contains(name)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string order, ReadMember(name, 16));
    if (order == "little") return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": the byte order is ", order,
                     "; only files of little-endian machines are read"));
  }

  absl::Status AddTensor(const std::string& root, const PickledTensor& tensor) {
    const std::string& name = tensor.info.name;
    if (!tensor.is_contiguous) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", name, " is not contiguous; save it behind .contiguous()"));
    }
    const auto storage =
        by_name_.find(absl::StrCat(root, "/data/", tensor.storage));
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(tensor.info));
    const uint64_t element = BytesOf(tensor.info.type);
    const uint64_t stored = storage == by_name_.end()
                                ? 0
                                : archive_.members()[storage->second].size;
    const bool is_inside = bytes <= stored && element > 0 &&
                           tensor.offset <= (stored - bytes) / element;
    if (element > 0 && bytes > 0 && !is_inside) {
      return absl::DataLossError(absl::StrCat(
          "tensor ", name, " of ", bytes, " bytes is not in its storage ",
          tensor.storage, " of ", stored, " bytes"));
    }
    tensors_.push_back(tensor.info);
    places_.push_back(
        {.member = storage == by_name_.end() ? 0 : storage->second,
         .data = tensor.offset * element});
    return absl::OkStatus();
  }

  const std::string path_;
  ZipReader archive_;
  std::map<std::string, size_t> by_name_;
  std::vector<TensorInfo> tensors_;
  std::vector<Place> places_;  // order of `tensors_`
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenPyTorch(
    const std::string& path) {
  absl::StatusOr<ZipReader> archive = ZipReader::Open(path);
  if (absl::IsDataLoss(archive.status())) {
    return absl::DataLossError(
        absl::StrCat(archive.status().message(),
                     "; torch.save() writes one since PyTorch 1.6, unless "
                     "_use_new_zipfile_serialization=False"));
  }
  RETURN_IF_ERROR(archive.status());
  auto reader = std::make_unique<PyTorchReader>(path, *std::move(archive));
  RETURN_IF_ERROR(reader->ReadPickle());
  return reader;
}

}  // namespace parasol
