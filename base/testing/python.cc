#include "base/testing/python.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace parasol {
namespace {

// From the folder that tests are started in.
constexpr char kInstalled[] = "tests/python/environment/python";
constexpr absl::Duration kLimit = absl::Minutes(2);

std::string PythonOfTests() {
  if (const char* const named = std::getenv("PARASOL_PYTHON")) return named;
  return access(kInstalled, X_OK) == 0 ? kInstalled : "python3";
}

}  // namespace

CompletedProcess RunPython(const std::string& program,
                           const std::vector<std::string>& arguments) {
  SubprocessOptions options;
  options.argv = {"/usr/bin/env", PythonOfTests(), "-c", program};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = {{"TF_CPP_MIN_LOG_LEVEL", "3"}};
  absl::StatusOr<CompletedProcess> run =
      RunSubprocess(std::move(options), kLimit);
  if (run.ok()) return *std::move(run);
  CompletedProcess failed;
  failed.end.exit_code = 1;
  failed.standard_error = std::string(run.status().message());
  return failed;
}

std::string PythonLacks(const std::string& modules) {
  if (RunPython("import " + modules, {}).end.code() == 0) return "";
  return absl::StrCat(PythonOfTests(), " lacks one of ", modules,
                      "; run tests/python/install, or name a Python that has "
                      "them with --test_env=PARASOL_PYTHON");
}

}  // namespace parasol
