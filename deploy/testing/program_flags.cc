#include "deploy/testing/program_flags.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "re2/re2.h"

namespace parasol {

std::set<std::string> FlagsOfProgram(const std::string& role) {
  const absl::StatusOr<CompletedProcess> completed = RunSubprocess(
      {.argv = {absl::StrCat(role, "/", role), "--help"}}, absl::Minutes(1));
  if (!completed.ok()) return {};
  const std::string help =
      absl::StrCat(completed->standard_output, completed->standard_error);
  std::set<std::string> flags;
  re2::StringPiece rest = help;
  std::string flag;
  const RE2 line(R"((?m)^ +--(?:\[no\])?([a-z_]+))");
  while (RE2::FindAndConsume(&rest, line, &flag)) flags.insert(flag);
  return flags;
}

}  // namespace parasol
