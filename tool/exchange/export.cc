#include "tool/exchange/export.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/job/job_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_bundle.h"
#include "tool/exchange/export_companions.h"
#include "tool/exchange/exported_tensors.h"
#include "tool/exchange/flat_orders.h"
#include "tool/exchange/keras_checkpoint.h"
#include "tool/exchange/pytorch_writer.h"

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

absl::StatusOr<std::unique_ptr<TensorWriter>> NewFileWriter(
    const ExportOptions& options, std::vector<TensorPart> parts,
    const durable::CheckpointManifest& manifest) {
  switch (options.format) {
    case TensorFormat::kSafetensors:
      return NewSafetensorsWriter(options.output, std::move(parts));
    case TensorFormat::kNpz:
      return NewNpzWriter(options.output, std::move(parts));
    case TensorFormat::kCsv:
      return NewCsvWriter(options.output, std::move(parts));
    case TensorFormat::kTensorFlow:
    case TensorFormat::kPyTorch:  // not written
    case TensorFormat::kKeras:    // not written
      break;
  }
  return NewTensorFlowWriter(options.output, std::move(parts), manifest);
}

absl::StatusOr<std::unique_ptr<TensorWriter>> NewWriter(
    const std::string& checkpoint, const ExportOptions& options,
    const std::vector<TensorPart>& parts,
    const durable::CheckpointManifest& manifest) {
  if (!options.pytorch_layout) return NewFileWriter(options, parts, manifest);
  ASSIGN_OR_RETURN(const LoadedJob job, JobOfCheckpoint(checkpoint, {}));
  return NewPyTorchWriter(
      parts, ChannelsFirstOrders(job.job.model(), job.graph),
      [&](std::vector<TensorPart> there) {
        return NewFileWriter(options, std::move(there), manifest);
      });
}

}  // namespace

absl::Status Export(const std::string& path, const ExportOptions& options) {
  ASSIGN_OR_RETURN(const std::string directory, CheckpointAt(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   OpenCheckpointAt(directory));
  const durable::CheckpointManifest& manifest = checkpoint->manifest();
  // TensorFlow can't join slices of unsigned numbers.
  const bool has_no_uint64 = options.format == TensorFormat::kTensorFlow;
  ASSIGN_OR_RETURN(
      const ExportedTensors tensors,
      ExportedTensors::Plan(
          *checkpoint,
          {.slots = options.slots && !options.pytorch_layout,
           .counts = !options.pytorch_layout,
           .averages = options.averages,
           .ids = has_no_uint64 ? ElementType::kInt64 : ElementType::kUint64}));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorWriter> writer,
                   NewWriter(directory, options, tensors.parts(), manifest));
  RETURN_IF_ERROR(tensors.Write(*writer));
  RETURN_IF_ERROR(WriteExportCompanions(manifest.job(), options.output));
  return writer->Finish();
}

}  // namespace parasol
