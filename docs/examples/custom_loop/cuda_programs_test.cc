// The programs of this folder that have models, a few steps of each, with CUDA
// devices: on one, on two of a process, on one of two processes each, and with
// a ps. The figures are the CPU's, but for rounding.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "docs/examples/custom_loop/programs_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;

constexpr char kCuda[] = "--devices=cuda:0";
constexpr char kTwoCudas[] = "--devices=cuda:0,cuda:1";

class CudaProgramsTest : public ProgramsTest {
 protected:
  static Lines With(Lines command, const std::string& flag) {
    command.push_back(flag);
    return command;
  }

  // Two devices have the same bits wherever they are, and the figures of CPUs.
  void ExpectFiguresOfCpus(const Lines& command, float tolerance) {
    const std::vector<float> want = NumbersOf(OutputOf(command));
    ASSERT_THAT(want, Not(IsEmpty()));
    EXPECT_THAT(NumbersOf(OutputOf(With(command, kCuda))),
                Pointwise(FloatNear(tolerance), want));
    const Lines two = OutputOf(With(command, kTwoCudas));
    EXPECT_THAT(NumbersOf(two), Pointwise(FloatNear(tolerance), want));
    EXPECT_THAT(OutputOfTwoWorkers(With(command, kCuda)),
                ElementsAreArray(two));
  }
};

TEST_F(CudaProgramsTest, Gan) {
  ExpectFiguresOfCpus({"gan", "--batch=8", "--iterations=3", "--digits=50",
                       "--discriminator_updates=2", "--print_every=1"},
                      1e-3);
}

TEST_F(CudaProgramsTest, GanGoesOn) {
  ExpectGoesOn({"gan", "--batch=4", "--digits=50", "--print_every=1", kCuda});
}

// With one worker all updates come in order.
TEST_F(CudaProgramsTest, GanOnPsHasTheFiguresOfOneProcess) {
  const Lines command = {"gan",         "--batch=4",       "--iterations=3",
                         "--digits=50", "--print_every=1", kCuda};
  EXPECT_THAT(OutputOnPs(command, /*workers=*/1, /*ps=*/1, 3),
              ElementsAreArray(OutputOf(command)));
}

TEST_F(CudaProgramsTest, Contrastive) {
  ExpectFiguresOfCpus(
      {"contrastive", "--batch=8", "--iterations=3", "--print_every=1"}, 2e-3);
}

TEST_F(CudaProgramsTest, Characters) {
  const Lines command = {"characters",   absl::StrCat("--text=", MakeText()),
                         "--model=lstm", "--steps=8",
                         "--width=8",    "--units=16",
                         "--batch=4",    "--iterations=6",
                         "--report=1",   "--learning_rate=0.01"};
  const std::vector<float> want = NumbersBehind(": loss ", OutputOf(command));
  ASSERT_THAT(want, Not(IsEmpty()));
  EXPECT_THAT(NumbersBehind(": loss ", OutputOf(With(command, kTwoCudas))),
              Pointwise(FloatNear(1e-3), want));
}

}  // namespace
}  // namespace parasol
