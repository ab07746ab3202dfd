#include "base/command_line.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/did_you_mean.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kColumns = 79;
// Stands before each value of a RepeatedFlag in its text form: ASCII's unit
// separator, which nobody types.
constexpr char kSeparator = '\x1f';

// What is said of a value of a type that has no words of its own.
std::string WhatIsWanted(const absl::CommandLineFlag& flag,
                         const std::string& value) {
  if (flag.IsOfType<absl::Duration>()) {
    double number = 0;
    return absl::SimpleAtod(value, &number)
               ? absl::StrCat("a time needs a unit; write --", flag.Name(), "=",
                              value, "s for seconds")
               : "not a time; write 5s, 10m or 1h30m";
  }
  if (flag.IsOfType<bool>()) return "write true or false";
  if (flag.IsOfType<int>() || flag.IsOfType<int64_t>() ||
      flag.IsOfType<std::optional<int>>()) {
    return "not an integer in the range of the flag";
  }
  if (flag.IsOfType<double>()) return "not a number";
  return "not a valid value";
}

// Abseil parses into a copy of the flag's default, so a repeated flag is given
// all its values each time.
absl::Status SetFlag(absl::CommandLineFlag& flag, const std::string& value) {
  std::string text = value;
  if (auto repeated = flag.TryGet<RepeatedFlag>()) {
    repeated->values.push_back(value);
    text = AbslUnparseFlag(*repeated);
  }
  std::string error;
  if (flag.ParseFrom(text, &error)) {
    const auto time = flag.TryGet<absl::Duration>();
    if (!time || *time >= absl::ZeroDuration()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag.Name(), "=", value, ": below 0; write a time such as 5s"));
  }
  // Abseil: "Illegal value 'x' specified for flag 'y'; <the type's words>".
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(error, absl::MaxSplits("; ", 1));
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag.Name(), "=", value, ": ",
      parts.second.empty() ? WhatIsWanted(flag, value) : parts.second));
}

bool Has(FlagNames flags, absl::string_view name) {
  return flags.empty() ||
         std::find(flags.begin(), flags.end(), name) != flags.end();
}

absl::CommandLineFlag* FindFlag(absl::string_view name, FlagNames flags) {
  return Has(flags, name) ? absl::FindCommandLineFlag(name) : nullptr;
}

// The flags that --help shows, in the order of their names.
std::map<std::string, const absl::CommandLineFlag*> ShownFlags(
    FlagNames flags) {
  std::map<std::string, const absl::CommandLineFlag*> shown;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    // Abseil's own flags come from files below "absl/".
    if (flag->IsRetired() || absl::StrContains(flag->Filename(), "absl/") ||
        !Has(flags, name)) {
      continue;
    }
    shown.emplace(name, flag);
  }
  return shown;
}

absl::Status UnknownFlag(absl::string_view name, FlagNames flags) {
  std::vector<std::string> names;
  for (const auto& [shown, flag] : ShownFlags(flags)) names.push_back(shown);
  const std::string nearest = NearestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag --", name,
      nearest.empty() ? "" : absl::StrCat(" (did you mean --", nearest, "?)")));
}

// Parses the flag at arguments[i]; returns how many arguments it took.
absl::StatusOr<size_t> ParseFlagAt(const std::vector<std::string>& arguments,
                                   size_t i, FlagNames flags,
                                   CommandLine& line) {
  absl::string_view text = arguments[i];
  if (!absl::ConsumePrefix(&text, "--")) absl::ConsumePrefix(&text, "-");
  const size_t equals = text.find('=');
  const bool has_value = equals != absl::string_view::npos;
  const absl::string_view name = text.substr(0, equals);
  if (!has_value && (name == "help" || name == "version")) {
    (name == "help" ? line.help : line.version) = true;
    return 1;
  }
  absl::CommandLineFlag* flag = FindFlag(name, flags);
  if (flag != nullptr && has_value) {
    RETURN_IF_ERROR(SetFlag(*flag, std::string(text.substr(equals + 1))));
    return 1;
  }
  if (flag != nullptr && flag->IsOfType<bool>()) {
    RETURN_IF_ERROR(SetFlag(*flag, "true"));
    return 1;
  }
  if (flag != nullptr) {
    if (i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " needs a value"));
    }
    RETURN_IF_ERROR(SetFlag(*flag, arguments[i + 1]));
    return 2;
  }
  absl::string_view positive = name;
  if (!has_value && absl::ConsumePrefix(&positive, "no")) {
    flag = FindFlag(positive, flags);
    if (flag != nullptr && flag->IsOfType<bool>()) {
      RETURN_IF_ERROR(SetFlag(*flag, "false"));
      return 1;
    }
  }
  return UnknownFlag(name, flags);
}

// Breaks one line; the continuation is indented as the line is.
void AppendWrapped(absl::string_view line, size_t indent, size_t columns,
                   std::string& wrapped) {
  const size_t own = std::min(line.find_first_not_of(' '), line.size());
  const std::string margin(indent + own, ' ');
  std::string current;
  for (const absl::string_view word :
       absl::StrSplit(line.substr(own), ' ', absl::SkipEmpty())) {
    if (!current.empty() &&
        margin.size() + current.size() + 1 + word.size() > columns) {
      absl::StrAppend(&wrapped, margin, current, "\n");
      current.clear();
    }
    absl::StrAppend(&current, current.empty() ? "" : " ", word);
  }
  absl::StrAppend(&wrapped, current.empty() ? "" : margin, current, "\n");
}

std::string FlagHelp(const absl::CommandLineFlag& flag) {
  const bool is_bool = flag.IsOfType<bool>();
  std::string help = absl::StrCat("  --", is_bool ? "[no]" : "", flag.Name());
  const std::string value = flag.DefaultValue();
  if (!value.empty()) absl::StrAppend(&help, "  (default: ", value, ")");
  return absl::StrCat(help, "\n", WrapText(flag.Help(), 6, kColumns));
}

}  // namespace

bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string*) {
  flag->values.clear();
  if (text.empty()) return true;
  if (text.front() == kSeparator) text.remove_prefix(1);
  flag->values = absl::StrSplit(text, kSeparator);
  return true;
}

std::string AbslUnparseFlag(const RepeatedFlag& flag) {
  std::string text;
  for (const std::string& value : flag.values) {
    text += kSeparator;
    text += value;
  }
  return text;
}

absl::StatusOr<CommandLine> ParseFlags(
    const std::vector<std::string>& arguments, FlagNames flags) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      line.positional.insert(line.positional.end(), arguments.begin() + i + 1,
                             arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      line.positional.push_back(argument);
      ++i;
      continue;
    }
    ASSIGN_OR_RETURN(const size_t taken,
                     ParseFlagAt(arguments, i, flags, line));
    i += taken;
  }
  return line;
}

std::string HelpText(absl::string_view usage, FlagNames flags) {
  std::string text = WrapText(usage, 0, kColumns);
  absl::StrAppend(&text, "\nFlags:\n");
  for (const auto& [name, flag] : ShownFlags(flags)) {
    absl::StrAppend(&text, FlagHelp(*flag));
  }
  absl::StrAppend(&text, "  --help\n      Prints this text.\n",
                  "  --version\n      Prints the version.\n");
  return text;
}

std::string WrapText(absl::string_view text, size_t indent, size_t columns) {
  std::string wrapped;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    AppendWrapped(line, indent, columns, wrapped);
  }
  return wrapped;
}

}  // namespace parasol
