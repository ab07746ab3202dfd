#include "tool/publish/bfloat16_writer.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

class Bfloat16Writer : public TensorWriter {
 public:
  Bfloat16Writer(std::vector<TensorPart> parts,
                 std::unique_ptr<TensorWriter> file)
      : TensorWriter(std::move(parts)), file_(std::move(file)) {}

 protected:
  absl::Status BeginPart(const TensorPart& part) override {
    is_float32_ = part.tensor.type == ElementType::kFloat32;
    return absl::OkStatus();
  }

  absl::Status WriteElements(absl::string_view bytes) override {
    if (!is_float32_) return file_->Append(bytes);
    values_.resize(bytes.size() / sizeof(float));
    std::memcpy(values_.data(), bytes.data(), bytes.size());
    rounded_.resize(EncodedBytes(job::BFLOAT16, values_.size()));
    Encode(job::BFLOAT16, values_,
           reinterpret_cast<std::byte*>(rounded_.data()));
    return file_->Append(rounded_);
  }

  absl::Status EndPart(const TensorPart&) override { return absl::OkStatus(); }
  absl::Status Commit() override { return file_->Finish(); }

 private:
  const std::unique_ptr<TensorWriter> file_;
  bool is_float32_ = false;
  std::vector<float> values_;
  std::string rounded_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWriter>> NewBfloat16Writer(
    const std::vector<TensorPart>& parts, const NewTensorWriter& create) {
  std::vector<TensorPart> rounded = parts;
  for (TensorPart& part : rounded) {
    if (part.tensor.type == ElementType::kFloat32) {
      part.tensor.type = ElementType::kBfloat16;
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TensorWriter> file,
                   create(std::move(rounded)));
  return std::make_unique<Bfloat16Writer>(parts, std::move(file));
}

}  // namespace parasol
