#include "cluster/job/job_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kExamples[] = "docs/examples";

TEST(JobFileTest, EveryExampleOfTheDocumentationIsAJobThatCanBeTrained) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    if (entry.path().extension() != ".textproto") continue;
    EXPECT_OK(LoadJobFile(entry.path(), {}));
    ++examples;
  }
  EXPECT_GE(examples, 2);
}

TEST(JobFileTest, AnUnknownValueComesWithThoseThereAre) {
  EXPECT_THAT(
      ParseJob("seed: 1\nstrategy { mirrored {\n"
               "  cross_device_ops: RING } }",
               "f"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(StartsWith("f:3:"),
                     EndsWith("Unknown enumeration value of \"RING\" for "
                              "field \"cross_device_ops\": it is one of "
                              "CROSS_DEVICE_OPS_UNSPECIFIED, "
                              "HIERARCHICAL_COPY, "
                              "REDUCTION_TO_ONE_DEVICE, NCCL"))));
  // Other faults have the parser's words.
  EXPECT_THAT(ParseJob("seed: x", "f"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f:1:7: Expected integer, got: x"));
}

TEST(JobFileTest, OverridesComeBeforeDefaultsAndValidation) {
  const std::string path = absl::StrCat(kExamples, "/mnist_mlp.textproto");
  ASSERT_OK_AND_ASSIGN(
      const LoadedJob loaded,
      LoadJobFile(path, {"end.epochs=1", "optimizer.sgd.momentum=0.5",
                         "end.epochs=2"}));
  const job::Job& job = loaded.job;
  EXPECT_EQ(job.end().epochs(), 2);
  EXPECT_EQ(job.optimizer().sgd().momentum(), 0.5);
  EXPECT_EQ(job.optimizer().sgd().learning_rate(), 0.01);

  EXPECT_THAT(LoadJobFile(path, {"end.epochs=0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("end.epochs: 0"))));
  EXPECT_THAT(LoadJobFile(path, {"end.epoch=1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--set=end.epoch=1")));
}

TEST(JobFileTest, AJobComesWithItsResolvedModel) {
  ASSERT_OK_AND_ASSIGN(
      const LoadedJob loaded,
      LoadJobFile(absl::StrCat(kExamples, "/mnist_mlp.textproto"), {}));
  EXPECT_EQ(loaded.graph.output_width(), 10);
  EXPECT_EQ(loaded.graph.variables.size(), 4);
  EXPECT_EQ(loaded.graph.outputs.front().loss.name(),
            "sparse_categorical_crossentropy");
}

TEST(JobFileTest, AFileThatCantBeReadIsNamed) {
  EXPECT_THAT(LoadJobFile("no/such/job", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/job")));
  const std::string directory = testing::TempDir();
  EXPECT_THAT(LoadJobFile(directory, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(directory), HasSubstr("name a file"))));
}

TEST(JobFileTest, AFileThatIsTooLongIsRefused) {
  const std::string path = absl::StrCat(testing::TempDir(), "/long.textproto");
  std::ofstream(path) << std::string(kMaxJobFileBytes + 1, '\n');
  EXPECT_THAT(LoadJobFile(path, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
}

TEST(ParseJobTest, AJobIsReadAsItStands) {
  ASSERT_OK_AND_ASSIGN(
      const job::Job job,
      ParseJob("name: 'x' # a comment\nend { epochs: 2.5 }", "f"));
  EXPECT_EQ(job.name(), "x");
  EXPECT_EQ(job.end().epochs(), 2.5);
  EXPECT_FALSE(job.has_seed());
  EXPECT_OK(ParseJob("", "f"));
}

TEST(ParseJobTest, ErrorsNameFileLineAndColumn) {
  struct Case {
    std::string text;
    std::string start;
    std::string words;
  };
  const Case cases[] = {
      {"name: 'x'\nlearning_rate: 1", "f:2:14: ", "learning_rate"},
      {"optimizer {\n  adam { rate: 1 } }", "f:2:14: ", "rate"},
      {"99: 1", "f:1:1: ", ""},
      {"seed: -1", "f:1:7: ", "integer"},
      {"seed: 18446744073709551616", "f:1:7: ", "out of range"},
      {"train { batch_size: 2147483648 }", "f:1:21: ", "out of range"},
      {"train { batch_size: 1.5 }", "f:1:21: ", "1.5"},
      {"name: 5", "f:1:7: ", "string"},
      {"worker { overlap: maybe }", "f:1:25: ", "maybe"},
      {"parameter_server { placement: FAST }", "f:1:36: ", "FAST"},
      {"parameter_server { placement: 7 }", "f:1:33: ", "7"},
      {"seed: 1\nseed: 1", "f:2:", "seed"},
      {"end {} end {}", "f:1:", "end"},
      {"optimizer { adam {} sgd {} }", "f:1:", "sgd"},
      {"end {", "f:1:", ""},
      {"end { steps: 1 }}", "f:1:17: ", ""},
      {"name: 'a\nb'", "f:1:", ""},
      {"[a.b.c] { x: 1 }", "f:1:", "a.b.c"},
      {"\xff\n", "f:1:1: ", ""},
      {std::string("\0", 1), "f:1:1: ", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ParseJob(c.text, "f"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith(c.start), HasSubstr(c.words),
                               Not(HasSubstr("\n")))));
  }
}

TEST(ParseJobTest, ABracketWithoutItsCounterpartIsNamed) {
  EXPECT_THAT(ParseJob("model {\n  layer {\n", "f"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f:2:9: \"layer {\" is not closed: the file ends inside "
                       "it, without its }"));
  EXPECT_THAT(ParseJob("end { steps: 1 } }", "f"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("f:1:18: this } closes nothing")));
}

TEST(ReadJobFileTest, APipeIsRefusedAndNotWaitedFor) {
  const std::string path = testing::TempDir() + "/pipe";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadJobFile(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/pipe: is a pipe, a device or the like")));
  EXPECT_THAT(ReadJobFile("/dev/zero"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadJobFile(testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Is a directory")));
}

// Whatever a byte is changed to: a job, or a fault on one line.
TEST(ParseJobTest, DamagedTextIsAFaultOrStillAJob) {
  const std::string good =
      "name: 'x' seed: 7 model { input_shape: 28 layer { dense { units: 3 } } }"
      " worker { overlap: true non_finite_loss: STOP } end { epochs: 1e3 }";
  ASSERT_OK(ParseJob(good, "f"));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(byte);
      const auto job = ParseJob(damaged, "f");
      if (job.ok()) continue;
      EXPECT_THAT(job, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(StartsWith("f:"), Not(HasSubstr("\n")))))
          << damaged;
    }
  }
}

}  // namespace
}  // namespace parasol
