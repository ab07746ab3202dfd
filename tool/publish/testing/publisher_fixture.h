#ifndef PARASOL_TOOL_PUBLISH_TESTING_PUBLISHER_FIXTURE_H_
#define PARASOL_TOOL_PUBLISH_TESTING_PUBLISHER_FIXTURE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/testing/python.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gtest/gtest.h"
#include "tool/publish/publisher.h"

namespace parasol {

// Returns the file's contents; an empty text if there is none.
std::string TextOf(const std::string& path);

// Returns the bytes of a safetensors file's tensors, by their names.
std::map<std::string, std::string> TensorsAt(const std::string& path);

// Fixture with a model of 8,000 elements and a directory for its versions.
class PublisherFixture : public ::testing::Test {
 protected:
  // The result of the receiver in Python.
  struct Received {
    std::map<std::string, std::string> tensors = {};
    std::string output = {};
    std::string errors = {};
    int code = 0;
  };

  PublisherFixture();

  std::string Out(const std::string& name = "") const;
  Publisher::Options Options() const { return {.directory = Out()}; }

  // Publishes the model's next step, in which `changed` of the kernel's
  // elements differ.
  absl::StatusOr<Publication> PublishNext(Publisher& publisher, int changed);
  // Publishes the model as it is.
  absl::StatusOr<Publication> Publish(Publisher& publisher);

  // Has the receiver rebuild the newest version.
  Received Receive() const;

  std::string KernelBytes() const;

  const std::string root_;
  ModelCheckpoint model_;
};

#define SKIP_WITHOUT_PYTHON()                                                  \
  if (const std::string why = PythonLacks("numpy, zstandard"); !why.empty()) { \
    GTEST_SKIP() << why;                                                       \
  }

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_TESTING_PUBLISHER_FIXTURE_H_
