#include "storage/tensor_files/tensor_format.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/keras_reader.h"
#include "storage/tensor_files/npz_reader.h"
#include "storage/tensor_files/pytorch_reader.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIndexSuffix = ".index";
// The checkpoint in a SavedModel's directory.
constexpr absl::string_view kSavedModelPrefix = "/variables/variables";

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool IsSavedModel(const std::string& path) {
  return Exists(absl::StrCat(path, kSavedModelPrefix, kIndexSuffix));
}

bool EndsWithOneOf(absl::string_view path,
                   std::initializer_list<absl::string_view> suffixes) {
  for (const absl::string_view suffix : suffixes) {
    if (absl::EndsWith(path, suffix)) return true;
  }
  return false;
}

// How the tensors of a file that is not read get into one that is.
std::string WayOutOf(absl::string_view path) {
  if (absl::EndsWith(path, ".onnx")) {
    return "ONNX is not read: write the tensors as safetensors or npz";
  }
  if (!Exists(std::string(path))) return "no file or directory has this name";
  return "no tensors are known by this name: files of tensors are "
         ".safetensors, .npz, .pt, .keras or .h5 (parasol import has --format "
         "for others)";
}

absl::StatusOr<std::string> TensorBundlePrefix(const std::string& path) {
  if (IsSavedModel(path)) return absl::StrCat(path, kSavedModelPrefix);
  if (IsDirectory(path)) return NewestTensorBundle(path);
  return std::string(absl::StripSuffix(path, kIndexSuffix));
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
    case TensorFormat::kPyTorch:
      return OpenPyTorch(path);
    case TensorFormat::kKeras:
      return OpenKeras(path);
    case TensorFormat::kTensorFlow:
      break;
  }
  ASSIGN_OR_RETURN(const std::string prefix, TensorBundlePrefix(path));
  return OpenTensorBundle(prefix);
}

}  // namespace

absl::StatusOr<TensorFormat> ParseTensorFormat(absl::string_view name) {
  if (name == "safetensors") return TensorFormat::kSafetensors;
  if (name == "npz") return TensorFormat::kNpz;
  if (name == "tensorflow") return TensorFormat::kTensorFlow;
  if (name == "csv") return TensorFormat::kCsv;
  if (name == "pytorch") return TensorFormat::kPyTorch;
  if (name == "keras") return TensorFormat::kKeras;
  return absl::InvalidArgumentError(absl::StrCat(
      "--format=", name,
      ": must be safetensors, npz, tensorflow, csv, pytorch or keras"));
}

absl::StatusOr<TensorFormat> FormatOfFilesAt(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return TensorFormat::kSafetensors;
  if (absl::EndsWith(path, ".npz")) return TensorFormat::kNpz;
  if (EndsWithOneOf(path, {".pt", ".pth"})) return TensorFormat::kPyTorch;
  if (EndsWithOneOf(path, {".keras", ".h5", ".hdf5"})) {
    return TensorFormat::kKeras;
  }
  if (Exists(absl::StrCat(path, "/", kCsvListName))) return TensorFormat::kCsv;
  if (absl::EndsWith(path, kIndexSuffix) ||
      Exists(absl::StrCat(path, kIndexSuffix)) ||
      Exists(absl::StrCat(path, "/checkpoint")) || IsSavedModel(path)) {
    return TensorFormat::kTensorFlow;
  }
  return absl::NotFoundError(absl::StrCat(path, ": ", WayOutOf(path)));
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
