#include "cluster/cluster_spec/role_flags.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "cluster/cluster_spec/tf_config.h"

ABSL_FLAG(std::string, cluster_spec, "",
          "File with the tasks' addresses by role, in JSON as in TF_CONFIG's "
          "\"cluster\"; instead of TF_CONFIG. With --task.");
ABSL_FLAG(
    std::string, task, "",
    "This process's task in the cluster that another flag gives: worker/1.");
ABSL_FLAG(bool, check_config, false,
          "Check TF_CONFIG or --cluster_spec, print this task's place in the "
          "cluster as one line "
          "of JSON and exit 0 without opening a port; exit 2 if it is wrong.");
ABSL_FLAG(
    std::optional<parasol::StrategyKind>, strategy, std::nullopt,
    "parameter_server, multi_worker_mirrored, hybrid, default, one_device, "
    "mirrored or central_storage. Default: the job's.");

namespace parasol {

bool AbslParseFlag(absl::string_view text, StrategyKind* strategy,
                   std::string* error) {
  const std::optional<StrategyKind> named = StrategyNamed(text);
  if (!named.has_value()) {
    *error = absl::StrCat("must be ", StrategyNames());
    return false;
  }
  *strategy = *named;
  return true;
}

std::string AbslUnparseFlag(StrategyKind strategy) {
  return std::string(StrategyName(strategy));
}

namespace {

absl::StatusOr<TaskConfig> TaskConfigOfFile(const std::string& path,
                                            Role binary) {
  const std::string flag = absl::StrCat("--cluster_spec=", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxJsonBytes + 1, '\0');
  // A directory opens, but can't be read.
  if (!file || (file.read(text.data(), text.size()), file.bad())) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": can't be read; name a file that this process can read"));
  }
  text.resize(file.gcount());
  const std::string task = absl::GetFlag(FLAGS_task);
  ASSIGN_OR_RETURN(
      TaskConfig config,
      ParseClusterSpec(text, task, binary, absl::GetFlag(FLAGS_strategy)),
      _ << flag);
  config.place_flags = {flag, absl::StrCat("--task=", task)};
  return config;
}

absl::Status CheckAgree(const TaskConfig& flags, const TaskConfig& tf_config) {
  if (flags.role == tf_config.role && flags.index == tf_config.index &&
      flags.cluster == tf_config.cluster) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "TF_CONFIG (", RoleName(tf_config.role), "/", tf_config.index, ") and ",
      absl::StrJoin(flags.place_flags, " "),
      " name different tasks or clusters; unset TF_CONFIG, or leave the flags "
      "out"));
}

}  // namespace

absl::StatusOr<TaskConfig> TaskConfigFromEnvironment(Role binary) {
  const char* variable = std::getenv("TF_CONFIG");
  const std::string text = variable == nullptr ? "" : variable;
  const std::string path = absl::GetFlag(FLAGS_cluster_spec);
  if (path.empty() != absl::GetFlag(FLAGS_task).empty()) {
    return absl::InvalidArgumentError(
        path.empty() ? "--task: needs --cluster_spec=FILE beside it"
                     : "--cluster_spec: needs --task beside it, as worker/1");
  }
  absl::StatusOr<TaskConfig> tf_config =
      ParseTfConfig(text, binary, absl::GetFlag(FLAGS_strategy));
  if (path.empty()) return tf_config;
  ASSIGN_OR_RETURN(TaskConfig config, TaskConfigOfFile(path, binary));
  if (!text.empty()) {
    RETURN_IF_ERROR(tf_config.status());
    RETURN_IF_ERROR(CheckAgree(config, *tf_config));
  }
  return config;
}

TaskConfig TaskConfigOrExit(Role binary) {
  absl::StatusOr<TaskConfig> config = TaskConfigFromEnvironment(binary);
  if (!config.ok()) std::exit(ExitWith(config.status()));
  if (const absl::Status status = CheckChiefHasPs(*config); !status.ok()) {
    // The specification of --check_config has a place for the chief where the
    // flag --strategy asks for it: the line is printed, and the warning, too.
    const bool only_warns =
        absl::GetFlag(FLAGS_check_config) && config->strategy.has_value();
    const int exit_code = ExitWith(status);
    if (!only_warns) std::exit(exit_code);
  }
  if (!absl::GetFlag(FLAGS_check_config)) return *std::move(config);
  const std::string line = absl::StrCat(CheckConfigLine(*config), "\n");
  const bool written =
      std::fputs(line.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  std::exit(written ? ExitWith(absl::OkStatus())
                    : ExitWith(absl::InternalError(
                          "--check_config: stdout can't be written")));
}

}  // namespace parasol
