#include "deploy/tool/predict_command.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "deploy/tool/loaded_model.h"
#include "deploy/tool/output_flag.h"
#include "deploy/tool/prediction_writer.h"

namespace parasol {
namespace {

constexpr char kUsage[] =
    "Writes what a checkpoint's model gives for each example of the job's eval "
    "data set, in the order of the data: the outputs of the last layer, before "
    "any sigmoid or softmax of the loss. The data must have the job's labels, "
    "which are not used.\n"
    "\n"
    "  parasol predict CKPT --data_dir=DIR --output=FILE.csv|.jsonl|.npy\n"
    "\n"
    "  parasol predict /ckpt/mnist --data_dir=/data/mnist --output=mnist.npy\n"
    "  parasol predict /ckpt/ads --data_dir=/data "
    "--set=eval.csv.file[0]=new.csv "
    "--output=new.scores.csv\n"
    "\n"
    "Exit code: 0 done; 1 the checkpoint is damaged; 2 bad flags, data or job; "
    "138 try again.";

absl::Status RunPredict(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  const std::string output = absl::GetFlag(FLAGS_output);
  if (output.empty()) {
    return absl::InvalidArgumentError("--output is missing; try --help");
  }
  ASSIGN_OR_RETURN(const LoadedModel loaded, LoadModelByFlags(arguments[0]));
  ASSIGN_OR_RETURN(const std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Create(output, loaded.outputs));
  RETURN_IF_ERROR(loaded.model
                      ->Run([] { return false; },
                            [&writer](absl::Span<const float> outputs) {
                              return writer->Append(outputs);
                            })
                      .status());
  return writer->Finish();
}

}  // namespace

Command PredictCommand() {
  return {.name = "predict",
          .summary = "writes a model's outputs for each example",
          .usage = kUsage,
          .flags = {"data_dir", "device", "threads", "set", "output"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunPredict(arguments));
          }};
}

}  // namespace parasol
