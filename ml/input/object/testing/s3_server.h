#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"

namespace parasol {

// An S3 server of this machine (s3_server.py) whose bucket "b" is a folder of
// the test's, and which fails as it is told. Ends with this object.
class S3Server {
 public:
  // Starts it, and has this process, and those that it starts, find
  // credentials that it takes.
  explicit S3Server(absl::string_view name)
      : root_(absl::StrCat(testing::TempDir(), "/", name)) {
    namespace fs = std::filesystem;
    fs::remove_all(root_);
    fs::create_directories(root_ + "/b");
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    auto started = Subprocess::Start(
        {.argv = {"/usr/bin/python3", "ml/input/object/testing/s3_server.py",
                  root_},
         .standard_output = OutputTo::Pipe()});
    EXPECT_OK(started.status());
    server_ = *std::move(started);
    for (char c = 0; read(server_->output_pipe(), &c, 1) == 1 && c != '\n';) {
      port_ += c;
    }
    EXPECT_NE(port_, "");
  }

  const std::string& port() const { return port_; }

  // Returns the options of this server, behind a URI's '?'.
  std::string Options() const {
    return absl::StrCat(
        "region=us-east-1&scheme=http&endpoint_override=", "127.0.0.1:", port_);
  }
  std::string Uri(absl::string_view key) const {
    return absl::StrCat("s3://b/", key, "?", Options());
  }

  // Makes an object of the bucket, and returns its URI.
  std::string Put(const std::string& key, absl::string_view bytes) const {
    const std::filesystem::path path = PathOf(key);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return Uri(key);
  }
  std::string PathOf(const std::string& key) const {
    return absl::StrCat(root_, "/b/", key);
  }

  // Has the server fail, as s3_server.py has it; a line is a fault.
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
  // Returns the requests for parts of an object, but for a second look at the
  // last bytes of a part, which the library takes by chance (arrow_store.cc).
  std::vector<std::string> Reads(absl::string_view key) const {
    constexpr uint64_t kMostDoubted = 16;
    std::vector<std::string> reads;
    for (const std::string& line :
         Requests(absl::StrCat("GET /b/", key, " bytes="))) {
      const std::string range = line.substr(line.find("bytes=") + 6);
      const uint64_t begin = std::stoull(range);
      const uint64_t last = std::stoull(range.substr(range.find('-') + 1));
      if (last - begin >= kMostDoubted) reads.push_back(line);
    }
    return reads;
  }
  void ForgetRequests() const {
    std::filesystem::resize_file(root_ + "/requests", 0);
  }

 private:
  const std::string root_;
  std::unique_ptr<Subprocess> server_;
  std::string port_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
