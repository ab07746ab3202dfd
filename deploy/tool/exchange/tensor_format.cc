#include "deploy/tool/exchange/tensor_format.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/npz_reader.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIndexSuffix = ".index";

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::StatusOr<std::unique_ptr<TensorReader>> OpenInFormat(
    TensorFormat format, const std::string& path) {
  switch (format) {
    case TensorFormat::kSafetensors:
      return OpenSafetensors(path);
    case TensorFormat::kNpz:
      return OpenNpz(path);
    case TensorFormat::kCsv:
      return OpenCsv(path);
    case TensorFormat::kTensorFlow:
      break;
  }
  if (!IsDirectory(path)) {
    return OpenTensorBundle(std::string(absl::StripSuffix(path, kIndexSuffix)));
  }
  ASSIGN_OR_RETURN(const std::string prefix, NewestTensorBundle(path));
  return OpenTensorBundle(prefix);
}

}  // namespace

absl::StatusOr<TensorFormat> ParseTensorFormat(absl::string_view name) {
  if (name == "safetensors") return TensorFormat::kSafetensors;
  if (name == "npz") return TensorFormat::kNpz;
  if (name == "tensorflow") return TensorFormat::kTensorFlow;
  if (name == "csv") return TensorFormat::kCsv;
  return absl::InvalidArgumentError(absl::StrCat(
      "--format=", name, ": must be safetensors, npz, tensorflow or csv"));
}

absl::StatusOr<TensorFormat> FormatOfFilesAt(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return TensorFormat::kSafetensors;
  if (absl::EndsWith(path, ".npz")) return TensorFormat::kNpz;
  if (Exists(absl::StrCat(path, "/", kCsvListName))) return TensorFormat::kCsv;
  if (absl::EndsWith(path, kIndexSuffix) ||
      Exists(absl::StrCat(path, kIndexSuffix)) ||
      Exists(absl::StrCat(path, "/checkpoint"))) {
    return TensorFormat::kTensorFlow;
  }
  return absl::NotFoundError(
      absl::StrCat(path,
                   ": no tensors are known by this name; say what it is with "
                   "--format"));
}

absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensors(
    TensorFormat format, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<TensorReader> reader,
                   OpenInFormat(format, path));
  absl::StatusOr<std::unique_ptr<TensorReader>> joined =
      JoinParts(std::move(reader));
  RETURN_IF_ERROR(joined.status()) << path;
  return joined;
}

}  // namespace parasol
