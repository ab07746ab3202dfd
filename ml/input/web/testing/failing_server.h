#ifndef PARASOL_ML_INPUT_WEB_TESTING_FAILING_SERVER_H_
#define PARASOL_ML_INPUT_WEB_TESTING_FAILING_SERVER_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"

namespace parasol {

// A server of this machine, a script in Python, whose files lie in a folder of
// the test's, and which fails as it is told (faults.py). Ends with this object.
class FailingServer {
 public:
  // Starts `script`, with a folder of this name, made anew with the folder
  // `files` in it, and then `more` as its arguments.
  FailingServer(absl::string_view script, absl::string_view name,
                absl::string_view files, std::vector<std::string> more = {})
      : root_(absl::StrCat(testing::TempDir(), "/", name)),
        files_(absl::StrCat(root_, "/", files)) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(files_);
    std::vector<std::string> argv = {"/usr/bin/python3", std::string(script),
                                     root_};
    for (std::string& argument : more) argv.push_back(std::move(argument));
    auto started = Subprocess::Start(
        {.argv = std::move(argv), .standard_output = OutputTo::Pipe()});
    EXPECT_OK(started.status());
    server_ = *std::move(started);
    for (char c = 0; read(server_->output_pipe(), &c, 1) == 1 && c != '\n';) {
      port_ += c;
    }
    EXPECT_NE(port_, "");
  }

  const std::string& root() const { return root_; }
  const std::string& port() const { return port_; }
  // Returns where a file of the server lies.
  std::string PathOf(absl::string_view path) const {
    return absl::StrCat(files_, "/", path);
  }
  // Makes a file, another one than there was, as of another version.
  void Write(absl::string_view path, absl::string_view bytes) const {
    const std::filesystem::path file = PathOf(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file.string() + ".new", std::ios::binary) << bytes;
    std::filesystem::rename(file.string() + ".new", file);
  }

  // Has the server fail; a line is a fault.
  void SetFaults(const std::vector<std::string>& lines) const {
    const std::string path = root_ + "/faults";
    {
      std::ofstream file(path + ".new");
      for (const std::string& line : lines) file << line << "\n";
    }
    std::filesystem::rename(path + ".new", path);
  }

  // Returns the lines of all requests that begin with `start`.
  std::vector<std::string> Requests(absl::string_view start) const {
    std::ifstream file(root_ + "/requests");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (absl::StartsWith(line, start)) lines.push_back(line);
    }
    return lines;
  }
  void ForgetRequests() const {
    std::filesystem::resize_file(root_ + "/requests", 0);
  }

 private:
  const std::string root_;
  const std::string files_;
  std::unique_ptr<Subprocess> server_;
  std::string port_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_TESTING_FAILING_SERVER_H_
