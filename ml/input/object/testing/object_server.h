#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVER_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ml/input/web/testing/failing_server.h"

namespace parasol {

// A server of objects of this machine, whose bucket "b" is a folder of the
// test's, and which fails as it is told. All kinds of them name requests and
// faults alike (gcs_server.py). Ends with this object.
class ObjectServer : public FailingServer {
 public:
  virtual ~ObjectServer() = default;

  // Returns the options of this server, behind a URI's '?'.
  virtual std::string Options() const = 0;
  // Returns what an error says of credentials that are refused.
  virtual std::string Credentials() const = 0;
  // Returns how often a fault strikes for which `times` are wanted: a request
  // that fails takes some clients more than a second.
  virtual int Times(int times) const { return times; }

  // Returns a URI without options, as errors begin with, and with them.
  std::string Name(absl::string_view key,
                   absl::string_view bucket = "b") const {
    return absl::StrCat(scheme_, "://", bucket, "/", key);
  }
  std::string Uri(absl::string_view key, absl::string_view bucket = "b") const {
    return absl::StrCat(Name(key, bucket), "?", Options());
  }

  // Makes an object of the bucket, and returns its URI.
  std::string Put(absl::string_view key, absl::string_view bytes) const {
    Write(key, bytes);
    return Uri(key);
  }

  // Has the server fail; `times` is as a fault's, as Times() changes it.
  std::string Fault(absl::string_view request, absl::string_view what,
                    int times = 1, int skip = 0) const {
    return absl::StrCat(R"({"request": ")", request, R"(", "do": ")", what,
                        R"(", "times": )", Times(times), R"(, "skip": )", skip,
                        "}");
  }

  // Returns the requests for parts of an object, but for second looks.
  std::vector<std::string> Reads(absl::string_view key) const {
    std::vector<std::string> reads;
    for (std::string& line :
         Requests(absl::StrCat("GET /b/", key, " bytes="))) {
      if (SizeOf(line) > kMostDoubted) reads.push_back(std::move(line));
    }
    return reads;
  }
  // Returns the number of requests, but for second looks.
  size_t Asked() const {
    const std::vector<std::string> all = Requests("");
    return std::count_if(all.begin(), all.end(), [](const std::string& line) {
      return SizeOf(line) == 0 || SizeOf(line) > kMostDoubted;
    });
  }

 protected:
  ObjectServer(std::string scheme, absl::string_view script,
               absl::string_view name)
      : FailingServer(absl::StrCat("ml/input/object/testing/", script), name,
                      "b"),
        scheme_(std::move(scheme)) {}

 private:
  // Bytes of a second look at the end of a part, which the library takes by
  // chance (arrow_store.cc).
  static constexpr uint64_t kMostDoubted = 16;

  // Returns the size of the part that a request asks for; 0 if it asks for
  // none, or for all behind a byte.
  static uint64_t SizeOf(absl::string_view line) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, "bytes=");
    if (parts.size() < 2) return 0;
    const std::vector<absl::string_view> range =
        absl::StrSplit(parts.back(), absl::ByAnyChar("- "));
    uint64_t begin = 0;
    uint64_t last = 0;
    return range.size() > 1 && absl::SimpleAtoi(range[0], &begin) &&
                   absl::SimpleAtoi(range[1], &last)
               ? last - begin + 1
               : 0;
  }

  const std::string scheme_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVER_H_
