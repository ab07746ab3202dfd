#include "tool/checkpoint_command.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "tool/best_flag.h"
#include "tool/checkpoint/checkpoint_list.h"
#include "tool/checkpoint/inspection.h"
#include "tool/json_flag.h"

namespace parasol {
namespace {

constexpr char kCheckpointUsage[] =
    "Looks at checkpoints: lists a directory of them, verifies all bytes, or "
    "shows what is in one.\n"
    "\n"
    "  parasol checkpoint ls DIR      step, age, bytes, files and state of "
    "each\n"
    "  parasol checkpoint verify DIR  the same, with every checksum compared\n"
    "  parasol checkpoint show CKPT   step, job, run, variables and sparse\n"
    "                                 tables with what their values are like,\n"
    "                                 slots, workers, journals and files\n"
    "\n"
    "DIR is a directory of checkpoints, or a checkpoint's own. CKPT is a "
    "checkpoint's directory, or one with many, of which the newest is meant. "
    "With --best, or as DIR/BEST, it is the one with the best evaluation.\n"
    "\n"
    "  parasol checkpoint ls /ckpt/mnist\n"
    "  parasol checkpoint verify /ckpt/mnist\n"
    "  parasol checkpoint verify /ckpt/mnist/ckpt-000000001200\n"
    "  parasol checkpoint show /ckpt/mnist\n"
    "  parasol checkpoint show /ckpt/mnist --best\n"
    "  parasol checkpoint show /ckpt/mnist --json | jq .variables[].name\n"
    "\n"
    "Exit code: 0 done; 1 show and verify: one is damaged; 1 one is of a newer "
    "format; 2 there is none, or bad flags; 138 one can't be read now. ls of a "
    "directory without checkpoints is no error.";

absl::Status ShowCheckpoint(const std::string& path) {
  ASSIGN_OR_RETURN(const Inspection inspection, Inspect(path));
  const std::string text =
      absl::GetFlag(FLAGS_json) ? ToJson(inspection) : ToText(inspection);
  fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

// Damage, which is in the list, goes before what `ls` and `verify` return.
absl::Status List(const std::string& path, Look look, bool& has_damage) {
  ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(path, look));
  // All are whole where there is none; that is not what verify is asked.
  if (look == Look::kAll && list.checkpoints.empty()) {
    return absl::NotFoundError(absl::StrCat(
        list.directory, ": has no checkpoint; name a directory that has some"));
  }
  const absl::Time now = Clock::Real().Now();
  const std::string text =
      absl::GetFlag(FLAGS_json) ? ToJson(list, now) : ToText(list, now);
  fputs(text.c_str(), stdout);
  has_damage = list.HasDamage();
  return list.Unreadable();
}

int RunCheckpoint(const std::vector<std::string>& arguments) {
  const absl::Status enough =
      RequireArguments(arguments, 2, "ls, verify or show, or what to look at,");
  if (!enough.ok()) return ExitWith(enough);
  const std::string& action = arguments[0];
  const std::string path = CheckpointByFlag(arguments[1]);
  if (action == "show") return ExitWith(ShowCheckpoint(path));
  bool has_damage = false;
  if (action == "ls") return ExitWith(List(path, Look::kEnds, has_damage));
  if (action == "verify") {
    const int code = ExitWith(List(path, Look::kAll, has_damage));
    return has_damage ? static_cast<int>(ExitCode::kPermanentFailure) : code;
  }
  return ExitWith(absl::InvalidArgumentError(
      absl::StrCat("unknown action ", ShownText(action),
                   ": there are ls, verify and show; try --help")));
}

int RunInspect(const std::vector<std::string>& arguments) {
  const absl::Status enough = RequireArguments(arguments, 1, "CKPT");
  if (!enough.ok()) return ExitWith(enough);
  return ExitWith(ShowCheckpoint(CheckpointByFlag(arguments[0])));
}

}  // namespace

Command InspectCommand() {
  return {.name = "inspect",
          .summary = "short for `checkpoint show`",
          .usage =
              "Shows what is in a checkpoint, as `parasol checkpoint show` "
              "does.\n"
              "\n"
              "  parasol inspect CKPT",
          .flags = {"best", "data_cache_dir", "json"},
          .run = RunInspect};
}

Command CheckpointCommand() {
  return {.name = "checkpoint",
          .summary = "lists and verifies checkpoints, shows what is in one",
          .usage = kCheckpointUsage,
          .flags = {"best", "data_cache_dir", "json"},
          .run = RunCheckpoint};
}

}  // namespace parasol
