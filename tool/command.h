#ifndef PARASOL_TOOL_COMMAND_H_
#define PARASOL_TOOL_COMMAND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace parasol {

// One command of the `parasol` tool, with its own flags and its own --help.
struct Command {
  std::string name = {};
  std::string summary = {};  // one line of `parasol --help`
  std::string usage = {};    // the text of --help, with examples
  std::vector<absl::string_view> flags = {};
  // Carries the command out, given its arguments that are not flags, and
  // returns the exit code.
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  // The exit code if stdout can't be written.
  int trouble = 1;
};

// Carries a command out and returns its exit code.
int RunCommand(const Command& command,
               const std::vector<std::string>& arguments);

// Returns the error of a command line that begins with no command's name.
absl::Status UnknownCommand(const std::vector<Command>& commands,
                            const std::string& name);

// Returns an error unless there are `count` arguments, which `names` describes
// ("CKPT").
//   InvalidArgument  the message names the first one that is missing or too
//                    many.
absl::Status RequireArguments(const std::vector<std::string>& arguments,
                              size_t count, absl::string_view names);

// Returns the command that `arguments`, the command line without its argv[0],
// begin with; null if they begin with none.
const Command* FindCommand(const std::vector<Command>& commands,
                           const std::vector<std::string>& arguments);

// Returns the text of `parasol --help`: every command with its summary.
std::string ToolUsage(const std::vector<Command>& commands);

}  // namespace parasol

#endif  // PARASOL_TOOL_COMMAND_H_
