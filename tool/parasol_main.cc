// The `parasol` binary: one command of the tool.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "tool/check_command.h"
#include "tool/checkpoint_command.h"
#include "tool/cluster_command.h"
#include "tool/command.h"
#include "tool/diff_command.h"
#include "tool/evaluate_command.h"
#include "tool/export_command.h"
#include "tool/import_command.h"
#include "tool/init_command.h"
#include "tool/predict_command.h"
#include "tool/publish_command.h"
#include "tool/serve_command.h"
#include "tool/status_command.h"
#include "tool/trace_command.h"
#include "tool/why_command.h"

namespace parasol {
namespace {

// The tool has no flags besides its commands' flags.
constexpr absl::string_view kNoFlag = "";

int Main(int argc, char** argv) {
  const std::vector<Command> commands = {
      InitCommand(),     CheckpointCommand(), DiffCommand(),
      ExportCommand(),   PublishCommand(),    ImportCommand(),
      EvaluateCommand(), PredictCommand(),    ServeCommand(),
      CheckCommand(),    StatusCommand(),     WhyCommand(),
      TraceCommand(),    InspectCommand(),    ClusterCommand()};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Command* const command = FindCommand(commands, arguments);
  if (command != nullptr) {
    const std::vector<std::string> rest =
        ParseCommandLine(argc - 1, argv + 1, command->usage, command->flags);
    ApplySystemLimits();
    ApplyDataCacheFlag();
    return RunCommand(*command, rest);
  }
  if (!arguments.empty() && !absl::StartsWith(arguments[0], "-")) {
    return ExitWith(UnknownCommand(commands, arguments[0]));
  }
  ParseCommandLine(argc, argv, ToolUsage(commands), {kNoFlag});
  return ExitWith(absl::InvalidArgumentError("no command; try --help"));
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) { return parasol::Main(argc, argv); }
