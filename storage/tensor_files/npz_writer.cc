#include "storage/tensor_files/npz_writer.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/tensor_files/npy_header.h"

namespace parasol {
namespace {

constexpr size_t kMaxNameBytes = 60'000;  // a ZIP archive has 16 bits for it

absl::Status CheckNpzNames(const std::vector<TensorPart>& parts) {
  std::set<std::string> names;
  for (const TensorPart& part : parts) {
    const std::string name = part.AsTensor().name;
    if (name.size() > kMaxNameBytes || !names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors have one name, or it is too long: ", name));
    }
  }
  return absl::OkStatus();
}

class NpzWriter : public TensorWriter {
 public:
  NpzWriter(std::vector<TensorPart> parts, ZipWriter archive)
      : TensorWriter(std::move(parts)), archive_(std::move(archive)) {}

 protected:
  absl::Status BeginPart(const TensorPart& part) override {
    const TensorInfo tensor = part.AsTensor();
    const std::string header = NpyHeader(tensor);
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(tensor));
    RETURN_IF_ERROR(archive_.BeginMember(absl::StrCat(tensor.name, ".npy"),
                                         header.size() + bytes));
    return archive_.Append(header);
  }
  absl::Status WriteElements(absl::string_view bytes) override {
    return archive_.Append(bytes);
  }
  absl::Status EndPart(const TensorPart&) override {
    return archive_.EndMember();
  }
  absl::Status Commit() override { return archive_.Finish(); }

 private:
  ZipWriter archive_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWriter>> NewNpzWriter(
    const std::string& path, std::vector<TensorPart> parts,
    ZipWriter::Options options) {
  RETURN_IF_ERROR(CheckNpzNames(parts));
  ASSIGN_OR_RETURN(ZipWriter archive, ZipWriter::Create(path, options));
  return std::make_unique<NpzWriter>(std::move(parts), std::move(archive));
}

}  // namespace parasol
