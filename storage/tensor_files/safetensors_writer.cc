#include "storage/tensor_files/safetensors_writer.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "storage/byte_order.h"
#include "storage/tensor_files/safetensors_type.h"
#include "storage/tensor_files/staged_file.h"

namespace parasol {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Tensors begin at a multiple of this, so that a reader may map the file.
constexpr size_t kAlignment = 8;

std::string TypeName(ElementType type) {
  for (const auto& [known, name] : kSafetensorsTypes) {
    if (known == type) return std::string(name);
  }
  return "";
}

absl::StatusOr<std::string> HeaderOf(
    const std::vector<TensorPart>& parts,
    const std::map<std::string, std::string>& metadata) {
  OrderedJson header = {
      {"__metadata__", {{"format", "pt"}, {"writer", "parasol"}}}};
  for (const auto& [key, value] : metadata) {
    header["__metadata__"][key] = value;
  }
  uint64_t end = 0;
  for (const TensorPart& part : parts) {
    const TensorInfo tensor = part.AsTensor();
    if (header.contains(tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors have the name ", tensor.name));
    }
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(tensor));
    header[tensor.name] = {{"dtype", TypeName(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

class SafetensorsWriter : public TensorWriter {
 public:
  SafetensorsWriter(std::vector<TensorPart> parts, StagedFile file)
      : TensorWriter(std::move(parts)), file_(std::move(file)) {}

  absl::Status WriteHeader(absl::string_view header) {
    std::string length;
    AppendLittleEndian(length, uint64_t{header.size()});
    RETURN_IF_ERROR(file_.Append(length));
    return file_.Append(header);
  }

 protected:
  absl::Status BeginPart(const TensorPart&) override {
    return absl::OkStatus();
  }
  absl::Status WriteElements(absl::string_view bytes) override {
    return file_.Append(bytes);
  }
  absl::Status EndPart(const TensorPart&) override { return absl::OkStatus(); }
  absl::Status Commit() override { return file_.Commit(); }

 private:
  StagedFile file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWriter>> NewSafetensorsWriter(
    const std::string& path, std::vector<TensorPart> parts,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const std::string header, HeaderOf(parts, metadata));
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  auto writer =
      std::make_unique<SafetensorsWriter>(std::move(parts), std::move(file));
  RETURN_IF_ERROR(writer->WriteHeader(header));
  return writer;
}

}  // namespace parasol
