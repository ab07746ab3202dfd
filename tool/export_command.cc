#include "tool/export_command.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "storage/tensor_files/tensor_format.h"
#include "tool/best_flag.h"
#include "tool/exchange/export.h"
#include "tool/exchange/layout_flag.h"
#include "tool/exchange/onnx/onnx_export.h"
#include "tool/format_flag.h"
#include "tool/output_flag.h"

ABSL_FLAG(bool, slots, true,
          "Exports the optimizer's slots, too, so that an import can train on "
          "as if nothing had happened.");

ABSL_FLAG(bool, averages, true,
          "Of a job with optimizer.ema: exports the moving averages in place "
          "of the variables.");

namespace parasol {
namespace {

constexpr char kExportUsage[] =
    "Writes a checkpoint's variables, slots and sparse tables to files of "
    "other programs.\n"
    "\n"
    "  parasol export CKPT --format=FORMAT --output=PATH\n"
    "\n"
    "CKPT is a checkpoint's directory, or one with many checkpoints, of which "
    "the newest is meant, or with --best (or as DIR/BEST) the one with the "
    "best evaluation. Formats: safetensors (PyTorch, Hugging Face), npz "
    "(numpy), tensorflow (tf.train.load_checkpoint, Checkpoint.restore), csv; "
    "and onnx: the whole model as onnxruntime computes it (operator set 13). "
    "Beside the tensors come PATH.job.textproto, the job, and "
    "PATH.vocabulary.INPUT.COLUMN.txt for each vocabulary. Needs less than 256 "
    "MiB of memory, however large the model is.\n"
    "\n"
    "  parasol export /ckpt/mnist --format=safetensors "
    "--output=mnist.safetensors\n"
    "  parasol export /ckpt/mnist --format=safetensors --layout=pytorch "
    "--output=mnist.pytorch.safetensors\n"
    "  parasol export /ckpt/mnist --format=tensorflow "
    "--output=/tmp/mnist/ckpt\n"
    "  parasol export /ckpt/mnist --format=npz --output=mnist.npz --noslots\n"
    "  parasol export /ckpt/mnist --format=onnx --output=mnist.onnx\n"
    "\n"
    "Exit code: 0 done; 1 the checkpoint is damaged, or the disk is full; 2 "
    "there is no checkpoint, or bad flags; 138 try again.";

absl::StatusOr<TensorFormat> WrittenFormat(const std::string& name) {
  const absl::StatusOr<TensorFormat> format = ParseTensorFormat(name);
  if (format.ok() && *format != TensorFormat::kPyTorch &&
      *format != TensorFormat::kKeras) {
    return format;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name.empty() ? "--format is missing" : absl::StrCat("--format=", name),
      ": must be safetensors (which PyTorch reads), npz, tensorflow or csv, or "
      "onnx for the model"));
}

absl::StatusOr<bool> WritesPyTorchLayout(const std::string& format) {
  ASSIGN_OR_RETURN(const bool pytorch_layout, HasPyTorchLayout());
  if (!pytorch_layout || (format != "onnx" && format != "tensorflow")) {
    return pytorch_layout;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--layout=pytorch: is for --format=safetensors, npz and csv, "
      "not ",
      format));
}

absl::Status RunExport(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  const std::string output = absl::GetFlag(FLAGS_output);
  if (output.empty()) {
    return absl::InvalidArgumentError("--output is missing; try --help");
  }
  if (output.back() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", output,
                     ": ends with a slash; leave it out, or name a file"));
  }
  const std::string format = absl::GetFlag(FLAGS_format);
  const bool averages = absl::GetFlag(FLAGS_averages);
  ASSIGN_OR_RETURN(const bool pytorch_layout, WritesPyTorchLayout(format));
  if (format == "onnx") {
    return ExportOnnx(CheckpointByFlag(arguments[0]),
                      {.output = output, .averages = averages});
  }
  ExportOptions options = {.output = output,
                           .pytorch_layout = pytorch_layout,
                           .slots = absl::GetFlag(FLAGS_slots),
                           .averages = averages};
  ASSIGN_OR_RETURN(options.format, WrittenFormat(format));
  return Export(CheckpointByFlag(arguments[0]), options);
}

}  // namespace

Command ExportCommand() {
  return {.name = "export",
          .summary = "writes a checkpoint to files of other programs",
          .usage = kExportUsage,
          .flags = {"data_cache_dir", "best", "averages", "format", "layout",
                    "output", "slots"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunExport(arguments));
          }};
}

}  // namespace parasol
