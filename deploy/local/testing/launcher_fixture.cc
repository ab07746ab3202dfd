#include "deploy/local/testing/launcher_fixture.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "deploy/remote/remote_command.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = R"(
  model {
    input_shape: [4]
    layer { dense { units: 2 } }
    loss { sparse_categorical_crossentropy {} }
  }
  train { idx { images: "x" labels: "y" } batch_size: 8 }
  optimizer { sgd {} }
  end { steps: 100 }
)";

// Returns a file in the format of MNIST's: a header for each of `sizes`, and as
// many bytes as they multiply to, in turn 0 and 1.
std::string IdxBytes(const std::vector<int>& sizes) {
  std::string bytes = {0, 0, 8, static_cast<char>(sizes.size())};
  int count = 1;
  for (const int size : sizes) {
    bytes += {0, 0, 0, static_cast<char>(size)};
    count *= size;
  }
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i % 2);
  return bytes;
}

}  // namespace

void LauncherFixture::SetUp() {
  here_ = testing::TempDir() + "/launcher_" +
          testing::UnitTest::GetInstance()->current_test_info()->name() + name_;
  fs::remove_all(here_);
  fs::create_directories(here_);
  std::ofstream(here_ + "/job.textproto") << kJob;
  std::ofstream(here_ + "/x") << IdxBytes({8, 2, 2});
  std::ofstream(here_ + "/y") << IdxBytes({8});
  for (const char* role : {"chief", "ps", "worker", "evaluator"}) {
    SetRole(role, kWaitsForGo);
  }
}

void LauncherFixture::WriteScript(const std::string& path,
                                  const std::string& script) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "#!/bin/sh\nHERE=" << ShellQuoted(here_) << "\n"
                      << script << "\n";
  chmod(path.c_str(), 0755);
}

void LauncherFixture::SetRole(const std::string& role,
                              const std::string& script) {
  WriteScript(absl::StrCat(here_, "/bin/", role, "/", role), script);
}

SubprocessOptions LauncherFixture::Launch(
    const std::vector<std::string>& flags) {
  SubprocessOptions options;
  options.argv = {DataFile("deploy/local/launcher"),
                  "--job=" + here_ + "/job.textproto", "--data_dir=" + here_,
                  "--checkpoint_dir=" + here_ + "/checkpoints",
                  "--bin_dir=" + here_ + "/bin"};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  return options;
}

std::string LauncherFixture::Text(const std::string& path) {
  std::ifstream file(here_ + "/" + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string LauncherFixture::Log(const std::string& task) {
  return Text("checkpoints/logs/" + task + ".log");
}

nlohmann::json Result(const CompletedProcess& launcher) {
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(launcher.standard_output, "\n"), '\n');
  return nlohmann::json::parse(lines.back(), nullptr, false);
}

std::string DataFile(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/",
                      path);
}

}  // namespace parasol
