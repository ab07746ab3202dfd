#include "cluster/cluster_spec/role_flags.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "cluster/cluster_spec/tf_config.h"

ABSL_FLAG(bool, check_config, false,
          "Check TF_CONFIG, print this task's place in the cluster as one line "
          "of JSON and exit 0 without opening a port; exit 2 if it is wrong.");
ABSL_FLAG(parasol::StrategyKind, strategy,
          parasol::StrategyKind::kParameterServer,
          "parameter_server or multi_worker_mirrored.");

namespace parasol {

bool AbslParseFlag(absl::string_view text, StrategyKind* strategy,
                   std::string* error) {
  const std::optional<StrategyKind> named = StrategyNamed(text);
  if (!named.has_value()) {
    *error = "must be parameter_server or multi_worker_mirrored";
    return false;
  }
  *strategy = *named;
  return true;
}

std::string AbslUnparseFlag(StrategyKind strategy) {
  return std::string(StrategyName(strategy));
}

absl::StatusOr<TaskConfig> TaskConfigFromEnvironment(Role binary) {
  const char* text = std::getenv("TF_CONFIG");
  return ParseTfConfig(text == nullptr ? "" : text, binary,
                       absl::GetFlag(FLAGS_strategy));
}

TaskConfig TaskConfigOrExit(Role binary) {
  absl::StatusOr<TaskConfig> config = TaskConfigFromEnvironment(binary);
  if (!config.ok()) std::exit(ExitWith(config.status()));
  if (!absl::GetFlag(FLAGS_check_config)) return *std::move(config);
  const std::string line = absl::StrCat(CheckConfigLine(*config), "\n");
  const bool written =
      std::fputs(line.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  std::exit(written ? ExitWith(absl::OkStatus())
                    : ExitWith(absl::InternalError(
                          "--check_config: stdout can't be written")));
}

}  // namespace parasol
