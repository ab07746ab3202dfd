#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ml/input/web/testing/failing_server.h"

namespace parasol {

// An S3 server of this machine (s3_server.py) whose bucket "b" is a folder of
// the test's, and which fails as it is told. Ends with this object.
class S3Server : public FailingServer {
 public:
  // Starts it, and has this process, and those that it starts, find
  // credentials that it takes.
  explicit S3Server(absl::string_view name)
      : FailingServer("ml/input/object/testing/s3_server.py", name, "b") {
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  }

  // Returns the options of this server, behind a URI's '?'.
  std::string Options() const {
    return absl::StrCat("region=us-east-1&scheme=http&endpoint_override=",
                        "127.0.0.1:", port());
  }
  std::string Uri(absl::string_view key) const {
    return absl::StrCat("s3://b/", key, "?", Options());
  }

  // Makes an object of the bucket, and returns its URI.
  std::string Put(absl::string_view key, absl::string_view bytes) const {
    Write(key, bytes);
    return Uri(key);
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
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
