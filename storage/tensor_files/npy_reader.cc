#include "storage/tensor_files/npy_reader.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/sized_file.h"

namespace parasol {
namespace {

class NpyReader : public TensorReader {
 public:
  NpyReader(SizedFile file, NpyArray array)
      : file_(std::move(file)),
        data_(array.data),
        tensors_({std::move(array.tensor)}) {}

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t /*tensor*/, uint64_t first,
                    absl::Span<char> out) override {
    return file_.Read(data_ + first, out);
  }

  absl::StatusOr<std::optional<uint64_t>> OffsetInFile(
      size_t /*tensor*/) override {
    return data_;
  }

 private:
  const SizedFile file_;
  const uint64_t data_;
  const std::vector<TensorInfo> tensors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenNpy(const std::string& path,
                                                      const std::string& name) {
  ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(path));
  ASSIGN_OR_RETURN(
      NpyArray array,
      ReadNpyHeader(file.size(),
                    [&file](uint64_t offset, absl::Span<char> out) {
                      return file.Read(offset, out);
                    }),
      _ << path);
  array.tensor.name = name;
  return std::make_unique<NpyReader>(std::move(file), std::move(array));
}

}  // namespace parasol
