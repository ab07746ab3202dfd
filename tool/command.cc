#include "tool/command.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/did_you_mean.h"
#include "base/process.h"

namespace parasol {

absl::Status RequireArguments(const std::vector<std::string>& arguments,
                              size_t count, absl::string_view names) {
  if (arguments.size() > count) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", arguments[count], "; try --help"));
  }
  if (arguments.size() < count) {
    return absl::InvalidArgumentError(
        absl::StrCat(names, " is missing; try --help"));
  }
  return absl::OkStatus();
}

const Command* FindCommand(const std::vector<Command>& commands,
                           const std::vector<std::string>& arguments) {
  for (const Command& command : commands) {
    if (!arguments.empty() && arguments[0] == command.name) return &command;
  }
  return nullptr;
}

int RunCommand(const Command& command,
               const std::vector<std::string>& arguments) {
  const int code = command.run(arguments);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  ExitWith(absl::InternalError("stdout can't be written"));
  return command.trouble;
}

absl::Status UnknownCommand(const std::vector<Command>& commands,
                            const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string nearest = NearestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown command ", name,
      nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)"),
      "; try parasol --help"));
}

std::string ToolUsage(const std::vector<Command>& commands) {
  std::string usage =
      "Writes first jobs, checks jobs, looks at trained models and moves them "
      "in and out; tells processes their places in a cluster.\n"
      "\n"
      "  parasol COMMAND [ARGUMENTS] [FLAGS]\n"
      "\n";
  for (const Command& command : commands) {
    absl::StrAppendFormat(&usage, "  %s: %s\n", command.name, command.summary);
  }
  absl::StrAppend(&usage, "\n`parasol COMMAND --help` has examples.");
  return usage;
}

}  // namespace parasol
