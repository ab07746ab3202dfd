#include "tool/testing/run_tool.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {

CompletedProcess RunBinary(const std::string& binary,
                           const std::vector<std::string>& arguments) {
  SubprocessOptions options;
  options.argv = {absl::StrCat(getenv("TEST_SRCDIR"), "/",
                               getenv("TEST_WORKSPACE"), "/", binary)};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  absl::StatusOr<CompletedProcess> run =
      RunSubprocess(std::move(options), absl::Seconds(120));
  EXPECT_OK(run);
  return run.value_or(CompletedProcess());
}

CompletedProcess RunTool(const std::vector<std::string>& arguments) {
  return RunBinary("tool/parasol", arguments);
}

}  // namespace parasol
