#include "deploy/tool/exchange/export.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "deploy/tool/checkpoint/checkpoint_argument.h"
#include "deploy/tool/exchange/exported_tensors.h"
#include "deploy/tool/exchange/keras_checkpoint.h"
#include "google/protobuf/text_format.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

absl::StatusOr<std::unique_ptr<TensorWriter>> NewTensorFlowWriter(
    const std::string& prefix, std::vector<TensorPart> parts,
    const durable::CheckpointManifest& manifest) {
  const KerasCheckpoint keras = KerasCheckpointOf(manifest);
  for (TensorPart& part : parts) {
    const auto key = keras.keys.find(part.tensor.name);
    if (key != keras.keys.end()) part.tensor.name = key->second;
  }
  return NewTensorBundleWriter(prefix, std::move(parts), keras.graph);
}

absl::StatusOr<std::unique_ptr<TensorWriter>> NewWriter(
    const ExportOptions& options, const std::vector<TensorPart>& parts,
    const durable::CheckpointManifest& manifest) {
  switch (options.format) {
    case TensorFormat::kSafetensors:
      return NewSafetensorsWriter(options.output, parts);
    case TensorFormat::kNpz:
      return NewNpzWriter(options.output, parts);
    case TensorFormat::kCsv:
      return NewCsvWriter(options.output, parts);
    case TensorFormat::kTensorFlow:
      break;
  }
  return NewTensorFlowWriter(options.output, parts, manifest);
}

absl::Status WriteJob(const job::Job& job, const std::string& output) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return ReplaceFileDurably(absl::StrCat(output, ".job.textproto"), text);
}

// A name as a part of a file's name.
std::string Plain(absl::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (!absl::ascii_isalnum(c) && c != '-') c = '_';
  }
  return plain;
}

absl::Status WriteVocabularies(const job::Model& model,
                               const std::string& output) {
  std::set<std::string> paths;
  for (const job::ModelInput& input : model.input()) {
    for (const job::IdColumn& column : input.ids().column()) {
      if (!column.has_vocabulary()) continue;
      const std::string path =
          absl::StrCat(output, ".vocabulary.", Plain(input.name()), ".",
                       Plain(absl::StrJoin(column.name(), "-")), ".txt");
      if (!paths.insert(path).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            path,
            ": two vocabularies of the job would have this file; give "
            "input ",
            input.name(), " or its column another name"));
      }
      RETURN_IF_ERROR(ReplaceFileDurably(
          path, absl::StrCat(absl::StrJoin(column.vocabulary().value(), "\n"),
                             "\n")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Export(const std::string& path, const ExportOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   OpenCheckpointAt(path));
  const durable::CheckpointManifest& manifest = checkpoint->manifest();
  // TensorFlow can't join slices of unsigned numbers.
  const bool has_no_uint64 = options.format == TensorFormat::kTensorFlow;
  ASSIGN_OR_RETURN(
      const ExportedTensors tensors,
      ExportedTensors::Plan(
          *checkpoint,
          {.slots = options.slots,
           .averages = options.averages,
           .ids = has_no_uint64 ? ElementType::kInt64 : ElementType::kUint64}));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorWriter> writer,
                   NewWriter(options, tensors.parts(), manifest));
  RETURN_IF_ERROR(tensors.Write(*writer));
  RETURN_IF_ERROR(WriteJob(manifest.job(), options.output));
  RETURN_IF_ERROR(WriteVocabularies(manifest.job().model(), options.output));
  return writer->Finish();
}

}  // namespace parasol
