#include "storage/tensor_files/keras_reader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/tensor_files/keras/hdf5_file.h"
#include "storage/tensor_files/keras/keras_names.h"
#include "storage/tensor_files/sized_file.h"
#include "storage/tensor_files/zip_reader.h"

namespace parasol {
namespace {

constexpr absl::string_view kConfig = "config.json";
constexpr absl::string_view kWeights = "model.weights.h5";
// Far more than the configuration of any model has.
constexpr uint64_t kMaxConfigBytes = 64 << 20;
constexpr uint64_t kPieceBytes = 1 << 20;

// The bytes of a file that are an HDF5 file, and what is known beside them.
struct Weights {
  uint64_t begin = 0;
  uint64_t size = 0;
  KerasConfig config = {};
};

class KerasReader : public TensorReader {
 public:
  explicit KerasReader(SizedFile file) : file_(std::move(file)) {}

  absl::Status Start(const Weights& weights) {
    ASSIGN_OR_RETURN(
        const Hdf5Contents contents,
        ReadHdf5(weights.size, [&](uint64_t offset, absl::Span<char> out) {
          return file_.Read(weights.begin + offset, out);
        }));
    ASSIGN_OR_RETURN(const std::vector<std::string> names,
                     KerasVariableNames(contents, weights.config));
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      const Hdf5Array& array = contents.arrays[i];
      tensors_.push_back({names[i], ElementTypeOf(array.type), array.shape});
      data_.push_back(weights.begin + array.data);
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    return file_.Read(data_[tensor] + first, out);
  }

  absl::StatusOr<std::optional<uint64_t>> OffsetInFile(size_t tensor) override {
    return data_[tensor];
  }

 private:
  const SizedFile file_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint64_t> data_;  // first bytes, order of `tensors_`
};

// The number of a member; fails if there is none.
absl::StatusOr<size_t> MemberOf(const std::string& path,
                                const ZipReader& archive,
                                absl::string_view name) {
  for (size_t i = 0; i < archive.members().size(); ++i) {
    if (archive.members()[i].name == name) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has no ", name,
      ", so it is none of model.save(\"model.keras\") of Keras 3"));
}

absl::StatusOr<KerasConfig> ReadConfig(const std::string& path,
                                       ZipReader& archive) {
  ASSIGN_OR_RETURN(const size_t member, MemberOf(path, archive, kConfig));
  const uint64_t size = archive.members()[member].size;
  if (size > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", kConfig, " has ", size, " bytes, and at most ",
                     kMaxConfigBytes, " are read"));
  }
  std::string text(size, '\0');
  RETURN_IF_ERROR(archive.Read(member, 0, absl::MakeSpan(text)));
  archive.Release(member);
  absl::StatusOr<KerasConfig> config = ParseKerasConfig(text);
  RETURN_IF_ERROR(config.status()) << path << ": " << kConfig;
  return config;
}

// Reads a member from front to back, so that its checksum is compared.
absl::Status CheckSum(ZipReader& archive, size_t member) {
  const uint64_t size = archive.members()[member].size;
  std::string piece;
  for (uint64_t first = 0; first < size; first += piece.size()) {
    piece.resize(std::min(size - first, kPieceBytes));
    RETURN_IF_ERROR(archive.Read(member, first, absl::MakeSpan(piece)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Weights> WeightsIn(const std::string& path) {
  ASSIGN_OR_RETURN(ZipReader archive, ZipReader::Open(path));
  ASSIGN_OR_RETURN(KerasConfig config, ReadConfig(path, archive));
  ASSIGN_OR_RETURN(const size_t member, MemberOf(path, archive, kWeights));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> begin,
                   archive.OffsetInFile(member));
  if (!begin) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", kWeights,
                     " is compressed, which Keras doesn't do: unpack the "
                     "archive, and pack it without compression"));
  }
  RETURN_IF_ERROR(CheckSum(archive, member));
  return Weights{.begin = *begin,
                 .size = archive.members()[member].size,
                 .config = std::move(config)};
}

absl::StatusOr<bool> IsArchive(const SizedFile& file) {
  ASSIGN_OR_RETURN(const std::string start,
                   file.Read(0, std::min<uint64_t>(file.size(), 2)));
  return start == "PK";
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenKeras(
    const std::string& path) {
  ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(path));
  ASSIGN_OR_RETURN(const bool is_archive, IsArchive(file));
  Weights weights = {.size = file.size()};
  if (is_archive) {
    ASSIGN_OR_RETURN(weights, WeightsIn(path));
  }
  auto reader = std::make_unique<KerasReader>(std::move(file));
  const absl::Status started = reader->Start(weights);
  if (is_archive) {
    RETURN_IF_ERROR(started) << path << ": " << kWeights;
  }
  RETURN_IF_ERROR(started) << path;
  return reader;
}

}  // namespace parasol
