#include "ml/zoo/example_models.h"

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/zoo/model_text.h"
#include "proto/job.pb.h"

namespace parasol::zoo {
namespace {

// If they differ, run: bazel run //ml/zoo:write_examples --
// --dir=$PWD/docs/examples
TEST(ExampleModelsTest, TheExampleJobsHaveExactlyTheZoosModels) {
  for (const auto& [name, model] : ExampleModels()) {
    SCOPED_TRACE(name);
    std::ifstream file(absl::StrCat("docs/examples/", name, ".textproto"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    ASSERT_OK_AND_ASSIGN(const std::string rewritten, WithModel(text, model));
    EXPECT_EQ(text, rewritten);
  }
}

}  // namespace
}  // namespace parasol::zoo
