// Prints a model of the zoo as a job file has it:
//   model resnet_cifar --blocks_per_stage=3
// and with --job=FILE this job with the model in place of its own.

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "ml/zoo/model_text.h"
#include "ml/zoo/named_model.h"
#include "proto/job.pb.h"

ABSL_FLAG(std::string, job, "",
          "Print this job file with the model in place of its own.");
ABSL_FLAG(
    std::optional<int64_t>, blocks_per_stage, std::nullopt,
    "Blocks in each of resnet_cifar's three stages: n for 6n + 2 layers.");
ABSL_FLAG(std::optional<int64_t>, image_size, std::nullopt,
          "Side of resnet_cifar's square images.");
ABSL_FLAG(std::optional<int64_t>, classes, std::nullopt, "Number of classes.");
ABSL_FLAG(std::optional<double>, dropout, std::nullopt,
          "Share of mlp's hidden units that is 0 in a training step.");
ABSL_FLAG(std::optional<double>, l2, std::nullopt,
          "l2 of all kernels (not of lenet).");

namespace parasol::zoo {
namespace {

constexpr char kUsage[] =
    "Prints a model as a job file has it: model NAME [flag]..., NAME being "
    "lenet, mlp, resnet_cifar or softmax_regression.";

absl::StatusOr<std::string> Text(const std::vector<std::string>& names) {
  if (names.size() != 1) {
    return absl::InvalidArgumentError("needs one model's name; try --help");
  }
  ASSIGN_OR_RETURN(
      const job::Model model,
      NamedModel(names[0],
                 {.blocks_per_stage = absl::GetFlag(FLAGS_blocks_per_stage),
                  .image_size = absl::GetFlag(FLAGS_image_size),
                  .classes = absl::GetFlag(FLAGS_classes),
                  .dropout = absl::GetFlag(FLAGS_dropout),
                  .l2 = absl::GetFlag(FLAGS_l2)}));
  const std::string path = absl::GetFlag(FLAGS_job);
  if (path.empty()) return ModelText(model);
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("--job=", path, ": can't be read"));
  }
  return WithModel(std::string(std::istreambuf_iterator<char>(file), {}),
                   model);
}

absl::Status Print(const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const std::string text, Text(names));
  std::cout << text << std::flush;
  if (std::cout) return absl::OkStatus();
  return absl::InternalError("stdout can't be written");
}

}  // namespace
}  // namespace parasol::zoo

int main(int argc, char** argv) {
  const std::vector<std::string> names =
      parasol::ParseCommandLine(argc, argv, parasol::zoo::kUsage);
  return parasol::ExitWith(parasol::zoo::Print(names));
}
