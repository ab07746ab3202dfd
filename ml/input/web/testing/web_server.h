#ifndef PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_
#define PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_

#include <unistd.h>

#include <cstdlib>
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

// A web server of this machine (web_server.py), whose files lie in a folder of
// the test's, and which fails as it is told. Ends with this object.
class WebServer {
 public:
  // Starts it. With a `certificate`'s name, as "IP:127.0.0.1", it speaks TLS.
  explicit WebServer(absl::string_view name, std::string certificate = "")
      : root_(absl::StrCat(testing::TempDir(), "/", name)),
        is_secure_(!certificate.empty()) {
    namespace fs = std::filesystem;
    fs::remove_all(root_);
    fs::create_directories(root_ + "/files");
    setenv("no_proxy", "127.0.0.1", 1);
    std::vector<std::string> argv = {
        "/usr/bin/python3", "ml/input/web/testing/web_server.py", root_};
    if (is_secure_) argv.push_back(std::move(certificate));
    auto started = Subprocess::Start(
        {.argv = std::move(argv), .standard_output = OutputTo::Pipe()});
    EXPECT_OK(started.status());
    server_ = *std::move(started);
    for (char c = 0; read(server_->output_pipe(), &c, 1) == 1 && c != '\n';) {
      port_ += c;
    }
    EXPECT_NE(port_, "");
  }

  // Returns the URL of a file, or of a folder, "d".
  std::string Url(absl::string_view path) const {
    return absl::StrCat(is_secure_ ? "https" : "http", "://127.0.0.1:", port_,
                        "/", path);
  }
  const std::string& port() const { return port_; }
  // Returns the path of the authority's certificate.
  std::string Authority() const { return root_ + "/authority.pem"; }

  // Makes a file, and returns its URL.
  std::string Put(const std::string& path, absl::string_view bytes) const {
    const std::filesystem::path file = PathOf(path);
    std::filesystem::create_directories(file.parent_path());
    // Another file, as of another version.
    std::ofstream(file.string() + ".new", std::ios::binary) << bytes;
    std::filesystem::rename(file.string() + ".new", file);
    return Url(path);
  }
  std::string PathOf(const std::string& path) const {
    return absl::StrCat(root_, "/files/", path);
  }

  // Has the server fail, as web_server.py has it; a line is a fault.
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
  const bool is_secure_;
  std::unique_ptr<Subprocess> server_;
  std::string port_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_
