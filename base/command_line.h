#ifndef PARASOL_BASE_COMMAND_LINE_H_
#define PARASOL_BASE_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// A command-line parser over Abseil's flags. Replaces Abseil's own parser,
// which exits with 1, prints several lines, and keeps only the last of several
// values.
namespace parasol {

// The values of a flag that may be given several times, in their order:
//
//   ABSL_FLAG(parasol::RepeatedFlag, set, {}, "path=value; repeatable");
//   for (const std::string& value : absl::GetFlag(FLAGS_set).values) …
struct RepeatedFlag {
  std::vector<std::string> values;
};
bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag,
                   std::string* error);
std::string AbslUnparseFlag(const RepeatedFlag& flag);

struct CommandLine {
  bool help = false;
  bool version = false;
  // Arguments that are not flags, and all arguments that follow "--".
  std::vector<std::string> positional;
};

// The flags of one command, for a binary that has several commands; empty: all
// flags of this project that are linked in.
using FlagNames = absl::Span<const absl::string_view>;

// Sets the flags that `arguments` (without argv[0]) name: --name=value, --name
// value, --name and --noname for a bool; one dash works as well. If a flag is
// given twice, the last value stays, unless it is a RepeatedFlag.
//   InvalidArgument  a flag that is unknown or not one of `flags`, a missing or
//                    a bad value; the message names it.
absl::StatusOr<CommandLine> ParseFlags(
    const std::vector<std::string>& arguments, FlagNames flags = {});

// Returns the text of --help: `usage`, then `flags` with their defaults; lines
// of at most 79 columns.
std::string HelpText(absl::string_view usage, FlagNames flags = {});

// Returns `text` with its lines broken between words so that they end before
// `columns`, each indented by `indent` spaces. Lines that are indented already
// keep their indentation.
std::string WrapText(absl::string_view text, size_t indent, size_t columns);

}  // namespace parasol

#endif  // PARASOL_BASE_COMMAND_LINE_H_
