// The programs of this folder, a few steps of each: on one replica, on two of a
// process, and on two of a process each, whose figures agree where mathematics
// says so.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/collective/socket_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr int kWorkers = 2;

using Lines = std::vector<std::string>;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/programs_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  // Starts a program; the `number`-th of this test.
  std::unique_ptr<Subprocess> Start(const Lines& command, int number,
                                    const std::string& cluster) {
    SubprocessOptions options;
    options.argv = command;
    options.argv.front() =
        absl::StrCat("docs/examples/custom_loop/", command.front());
    options.environment["TF_CONFIG"] = cluster;
    options.standard_output = OutputTo::File(PathOf(number, "out"));
    options.standard_error = OutputTo::File(PathOf(number, "log"));
    auto started = Subprocess::Start(options);
    EXPECT_OK(started);
    return started.ok() ? *std::move(started) : nullptr;
  }

  std::string PathOf(int number, const std::string& kind) const {
    return absl::StrCat(root_, "/", number, ".", kind);
  }
  Lines LinesOf(int number, const std::string& kind) const {
    std::ifstream file(PathOf(number, kind));
    Lines lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  void ExpectEnd(Subprocess& process, int number) {
    const auto end = process.Wait(kLimit);
    ASSERT_OK(end);
    EXPECT_EQ(end->code(), 0) << absl::StrJoin(LinesOf(number, "log"), "\n");
  }

  // Returns what a program prints in a process of its own.
  Lines OutputOf(const Lines& command) {
    const int number = runs_++;
    const auto process = Start(command, number, "");
    ExpectEnd(*process, number);
    return LinesOf(number, "out");
  }

  Lines OutputOfTwoReplicas(Lines command) {
    command.push_back("--devices=cpu:0,cpu:1");
    return OutputOf(command);
  }

  // Returns what the first one of two workers prints. The other one prints
  // nothing.
  Lines OutputOfTwoWorkers(const Lines& command) {
    std::vector<std::unique_ptr<SocketEndpoint>> endpoints;
    Lines addresses;
    for (int i = 0; i < kWorkers; ++i) {
      endpoints.push_back(*SocketEndpoint::Start("127.0.0.1", 0, {}));
      addresses.push_back(
          absl::StrCat("\"127.0.0.1:", endpoints.back()->port(), "\""));
    }
    endpoints.clear();
    const int first = runs_;
    runs_ += kWorkers;
    std::vector<std::unique_ptr<Subprocess>> processes;
    for (int i = 0; i < kWorkers; ++i) {
      processes.push_back(Start(
          command, first + i,
          absl::StrCat(
              "{\"cluster\": {\"worker\": [", absl::StrJoin(addresses, ", "),
              "]}, \"task\": {\"type\": \"worker\", \"index\": ", i, "}}")));
    }
    for (int i = 0; i < kWorkers; ++i) ExpectEnd(*processes[i], first + i);
    EXPECT_THAT(LinesOf(first + 1, "out"), IsEmpty());
    return LinesOf(first, "out");
  }

  // Returns the numbers of lines of text; of pictures there are none.
  static std::vector<float> NumbersOf(const Lines& lines) {
    std::vector<float> numbers;
    for (const std::string& line : lines) {
      for (size_t at = 0; at < line.size();) {
        if (!absl::ascii_isdigit(line[at])) {
          ++at;
          continue;
        }
        char* end = nullptr;
        numbers.push_back(std::strtof(&line[at], &end));
        at = end - line.data();
      }
    }
    return numbers;
  }

  // Two replicas have the same bits wherever they are, and of the same batch
  // the figures of one.
  void ExpectAgree(const Lines& one, const Lines& two, float tolerance) {
    const Lines alone = OutputOf(one);
    const Lines mirrored = OutputOfTwoReplicas(two);
    EXPECT_THAT(NumbersOf(alone), Not(IsEmpty()));
    EXPECT_THAT(NumbersOf(mirrored),
                Pointwise(FloatNear(tolerance), NumbersOf(alone)));
    EXPECT_THAT(OutputOfTwoWorkers(two), ElementsAreArray(mirrored));
  }

  // An interrupted program prints what an undisturbed one does.
  void ExpectGoesOn(const Lines& command) {
    const auto with = [&](const Lines& flags) {
      Lines all = command;
      all.insert(all.end(), flags.begin(), flags.end());
      return all;
    };
    const std::string directory =
        absl::StrCat("--checkpoint_dir=", root_, "/checkpoints");
    const Lines undisturbed = OutputOf(with({"--iterations=4"}));
    ASSERT_THAT(undisturbed, SizeIs(testing::Ge(4)));
    const Lines first = OutputOf(with({"--iterations=2", directory}));
    ASSERT_THAT(first, SizeIs(testing::Ge(2)));
    EXPECT_THAT(Lines(undisturbed.begin(), undisturbed.begin() + 2),
                ElementsAreArray(first.begin(), first.begin() + 2));
    const Lines second = OutputOf(with({"--iterations=4", directory}));
    EXPECT_THAT(Lines(undisturbed.begin() + 2, undisturbed.end()),
                ElementsAreArray(second));
  }

 private:
  const std::string root_;
  int runs_ = 0;
};

// The losses that TensorFlow prints.
TEST_F(ProgramsTest, GuidesLossesAreTensorFlows) {
  const Lines lines = OutputOf({"guide"});
  const std::vector<float> losses = NumbersOf(lines);
  ASSERT_THAT(losses, SizeIs(30));
  double logit = -.21567887;
  for (int step = 0; step < 20; ++step) {
    const double loss = std::log1p(std::exp(-logit));
    EXPECT_NEAR(losses[step], loss, 2e-7) << step;
    logit += .02 / (1 + std::exp(logit));
  }
  ExpectAgree({"guide", "--batch_per_replica=10"}, {"guide"}, 1e-6);
}

TEST_F(ProgramsTest, Gan) {
  const Lines command = {"gan",
                         "--batch=16",
                         "--iterations=4",
                         "--digits=200",
                         "--discriminator_updates=2",
                         "--print_every=1"};
  ExpectAgree(command, command, 1e-3);
}

TEST_F(ProgramsTest, GanGoesOn) {
  ExpectGoesOn({"gan", "--batch=16", "--digits=200", "--print_every=1"});
}

TEST_F(ProgramsTest, Contrastive) {
  const Lines command = {"contrastive", "--batch=32", "--iterations=5",
                         "--print_every=1"};
  ExpectAgree(command, command, 2e-3);
}

// A better figure than chance, of a program that learns.
TEST_F(ProgramsTest, ContrastiveLearns) {
  const Lines lines = OutputOf({"contrastive", "--iterations=200"});
  ASSERT_THAT(lines, Not(IsEmpty()));
  EXPECT_GT(NumbersOf({lines.back()}).back(), .8) << lines.back();
}

// What replicas draw at random is their own, so that two have other figures
// than one.
TEST_F(ProgramsTest, Reinforce) {
  const Lines command = {"reinforce", "--episodes=8", "--iterations=4"};
  const Lines mirrored = OutputOfTwoReplicas(command);
  EXPECT_THAT(mirrored, SizeIs(4));
  EXPECT_THAT(OutputOfTwoWorkers(command), ElementsAreArray(mirrored));
  EXPECT_THAT(NumbersOf(mirrored), Each(Lt(200.f)));
}

TEST_F(ProgramsTest, ReinforceGoesOn) {
  ExpectGoesOn({"reinforce", "--episodes=8"});
}

TEST_F(ProgramsTest, Wgan) {
  const Lines command = {"wgan", "--batch=32", "--iterations=4",
                         "--print_every=1"};
  const Lines mirrored = OutputOfTwoReplicas(command);
  EXPECT_THAT(mirrored, SizeIs(4));
  EXPECT_THAT(OutputOfTwoWorkers(command), ElementsAreArray(mirrored));
}

TEST_F(ProgramsTest, WganGoesOn) {
  ExpectGoesOn({"wgan", "--batch=32", "--print_every=1"});
}

}  // namespace
}  // namespace parasol
