#include "tool/inspect_command.h"

#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "tool/best_flag.h"
#include "tool/checkpoint/inspection.h"
#include "tool/json_flag.h"

namespace parasol {
namespace {

constexpr char kInspectUsage[] =
    "Shows what is in a checkpoint: its step, job and run, each variable and "
    "sparse table with what its values are like, the optimizer's slots, and "
    "the files. Reads all of it and verifies every checksum.\n"
    "\n"
    "  parasol inspect CKPT\n"
    "\n"
    "CKPT is a checkpoint's directory, or one with many checkpoints, of which "
    "the newest is meant, or with --best (or as DIR/BEST) the one with the "
    "best evaluation.\n"
    "\n"
    "  parasol inspect /ckpt/mnist\n"
    "  parasol inspect /ckpt/mnist/ckpt-000000001200\n"
    "  parasol inspect /ckpt/mnist --best\n"
    "  parasol inspect /ckpt/mnist --json | jq .variables[].name\n"
    "\n"
    "Exit code: 0 done; 1 the checkpoint is damaged; 2 there is none, or bad "
    "flags; 138 it can't be read now.";

absl::Status RunInspect(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  ASSIGN_OR_RETURN(const Inspection inspection,
                   Inspect(CheckpointByFlag(arguments[0])));
  const std::string text =
      absl::GetFlag(FLAGS_json) ? ToJson(inspection) : ToText(inspection);
  fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command InspectCommand() {
  return {.name = "inspect",
          .summary = "shows what is in a checkpoint",
          .usage = kInspectUsage,
          .flags = {"best", "json"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunInspect(arguments));
          }};
}

}  // namespace parasol
