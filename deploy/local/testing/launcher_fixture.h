#ifndef PARASOL_DEPLOY_LOCAL_TESTING_LAUNCHER_FIXTURE_H_
#define PARASOL_DEPLOY_LOCAL_TESTING_LAUNCHER_FIXTURE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {

// The launcher as users start it, with shell scripts in place of the roles. All
// wait for the file "go" in the test's directory, which tasks may create.
class LauncherFixture : public testing::Test {
 protected:
  static constexpr absl::Duration kLimit = absl::Seconds(30);
  static constexpr char kWaitsForGo[] =
      "while [ ! -e \"$HERE/go\" ]; do sleep 0.02; done; exit 0";
  // Stays until it is told to go, whatever becomes of the job.
  static constexpr char kStays[] = "exec sleep 60";

  // `name` is the last part of the name of the test's directory.
  explicit LauncherFixture(const std::string& name = "") : name_(name) {}
  void SetUp() override;

  // Makes an executable of a shell script, in which $HERE is the test's
  // directory.
  void WriteScript(const std::string& path, const std::string& script);
  void SetRole(const std::string& role, const std::string& script);

  SubprocessOptions Launch(const std::vector<std::string>& flags = {});

  // Returns the text of a file of the test's directory.
  std::string Text(const std::string& path);
  // Returns the log of a task: "ps-1".
  std::string Log(const std::string& task);

  std::string here_;

 private:
  const std::string name_;
};

// Returns the JSON of the launcher's last line.
nlohmann::json Result(const CompletedProcess& launcher);

// Returns the path of a file of the test's data: "deploy/local/launcher".
std::string DataFile(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_TESTING_LAUNCHER_FIXTURE_H_
