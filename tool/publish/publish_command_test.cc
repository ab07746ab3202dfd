// `parasol publish` as users start it, beside a job that trains.

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "base/testing/python.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Compares what the receiver rebuilds of a directory, argument 1, with an
// export, argument 2, tensor by tensor. Argument 3 is the receiver's output.
constexpr char kCompare[] = R"(
import json, struct
write(sys.argv[3], *receive(sys.argv[1]))
def read(path):
    blob = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", blob[:8])[0]
    return {name: (info["dtype"], info["shape"],
                   blob[slice(*(start + o for o in info["data_offsets"]))])
            for name, info in json.loads(blob[8:start]).items()
            if name not in ("__metadata__", "global_step", "Adam/iter")}
received, exported = read(sys.argv[3]), read(sys.argv[2])
assert received.keys() == exported.keys(), (received.keys(), exported.keys())
assert received == exported
print(len(received))
)";

class PublishCommandTest : public TrainedJobFixture {
 protected:
  std::vector<std::string> Command(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"publish", Path("ckpt"),
                                          "--output=" + Path("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  CompletedProcess Publish(const std::vector<std::string>& more = {}) const {
    return RunTool(Command(more));
  }

  std::unique_ptr<Subprocess> Follow() {
    SubprocessOptions options;
    options.argv = Command({"--follow", "--poll_interval=20ms"});
    options.argv.insert(
        options.argv.begin(),
        absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"),
                     "/tool/parasol"));
    options.standard_output = OutputTo::Pipe();
    auto follower = Subprocess::Start(options);
    EXPECT_OK(follower);
    return follower.ok() ? *std::move(follower) : nullptr;
  }

  // Expects that the receiver rebuilds what `parasol export` writes.
  void ExpectAsExported(const std::vector<std::string>& layout) {
    if (const std::string why = PythonLacks("numpy, zstandard"); !why.empty()) {
      GTEST_SKIP() << why;
    }
    std::vector<std::string> arguments = {
        "export", Path("ckpt"), "--format=safetensors", "--noslots",
        "--output=" + Path("exported.safetensors")};
    arguments.insert(arguments.end(), layout.begin(), layout.end());
    const CompletedProcess exported = RunTool(arguments);
    ASSERT_EQ(exported.end.code(), 0) << exported.standard_error;
    const absl::StatusOr<std::string> receiver =
        ReadFile("docs/examples/receiver/receive.py", 1 << 20);
    ASSERT_OK(receiver);
    const size_t main = receiver->find("if __name__");
    ASSERT_NE(main, std::string::npos);
    const CompletedProcess compared = RunPython(
        absl::StrCat(receiver->substr(0, main), kCompare),
        {Path("out"), Path("exported.safetensors"), Path("received")});
    EXPECT_EQ(compared.end.code(), 0) << compared.standard_error;
  }
};

TEST_F(PublishCommandTest, VersionsAreWhatExportWrites) {
  Train("ckpt", 4);
  CompletedProcess first = Publish();
  ASSERT_EQ(first.end.code(), 0) << first.standard_error;
  EXPECT_THAT(first.standard_output,
              HasSubstr("weight_v000001: step 4, whole"));
  ExpectAsExported({});
  Train("ckpt", 8);
  const CompletedProcess second = Publish();
  ASSERT_EQ(second.end.code(), 0) << second.standard_error;
  EXPECT_THAT(second.standard_output, HasSubstr("weight_v000002: step 8, "));
  ExpectAsExported({});
  EXPECT_THAT(Publish().standard_output, HasSubstr("is there already"));
}

TEST_F(PublishCommandTest, PyTorchLayoutIsWhatExportWrites) {
  Train("ckpt", 4);
  ASSERT_EQ(Publish({"--layout=pytorch"}).end.code(), 0);
  Train("ckpt", 8);
  ASSERT_EQ(Publish({"--layout=pytorch"}).end.code(), 0);
  ExpectAsExported({"--layout=pytorch"});
  const CompletedProcess other = Publish();
  EXPECT_EQ(other.end.code(), 2);
  EXPECT_THAT(other.standard_error, HasSubstr("with --layout=pytorch"));
}

TEST_F(PublishCommandTest, FollowerPublishesUntilTheJobsLastCheckpoint) {
  fs::create_directory(Path("ckpt"));
  const std::unique_ptr<Subprocess> follower = Follow();
  ASSERT_NE(follower, nullptr);
  Train("ckpt", 30);
  const auto end = follower->Wait(absl::Seconds(60));
  ASSERT_OK(end);
  EXPECT_EQ(end->code(), 0);
  ExpectAsExported({});
}

TEST_F(PublishCommandTest, TerminatedFollowerEndsInGoodOrder) {
  ModelCheckpoint model;
  ASSERT_OK(model.Write(Path("ckpt")));
  const std::unique_ptr<Subprocess> follower = Follow();
  ASSERT_NE(follower, nullptr);
  pollfd ready = {
      .fd = follower->output_pipe(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&ready, 1, 60000), 1);  // the first version's line
  follower->Terminate();
  const auto end = follower->Wait(absl::Seconds(60));
  ASSERT_OK(end);
  EXPECT_EQ(end->code(), 0);
  EXPECT_TRUE(fs::exists(Path("out/weight_v000001/manifest.json")));
}

TEST_F(PublishCommandTest, BadFlagsAreNamed) {
  Train("ckpt", 2);
  EXPECT_THAT(Publish({"--dtype=int8"}).standard_error,
              HasSubstr("--dtype=int8: must be float32 or bfloat16"));
  EXPECT_THAT(Publish({"--full_every=0"}).standard_error,
              HasSubstr("--full_every=0 is not at least 1"));
  EXPECT_THAT(RunTool({"publish", Path("ckpt")}).standard_error,
              HasSubstr("--output is missing"));
  EXPECT_EQ(Publish({"--dtype=int8"}).end.code(), 2);
  EXPECT_EQ(Publish({"--full_every=0"}).end.code(), 2);
  EXPECT_EQ(RunTool({"publish", Path("ckpt")}).end.code(), 2);
  const CompletedProcess missing =
      RunTool({"publish", Path("no"), "--output=" + Path("out"), "--follow"});
  EXPECT_EQ(missing.end.code(), 2);
  EXPECT_THAT(missing.standard_error, HasSubstr(Path("no")));
  EXPECT_FALSE(fs::exists(Path("out")));
}

}  // namespace
}  // namespace parasol
