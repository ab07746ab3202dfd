// Programs with a mistake of a user, as processes under every strategy: all
// end, and soon, each with one line that says what is wrong and where.

#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/testing/faulty_program.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FaultsTest, AnException) {
  ExpectAllSay("faulty: exception: out of luck",
               RunWith("exception", Default()));
  ExpectAllSay("faulty: replica 1 (cpu:1): exception: out of luck",
               RunWith("exception", Mirrored()));
  auto ends = RunWith("exception", TwoWorkers());
  ExpectAllSay("exception: out of luck", ends);
  EXPECT_THAT(ends["worker/0"].lines, ElementsAre(HasSubstr("worker/1: exc")));
  ends = RunWith("exception", OnPs());
  ExpectAllSay("exception: out of luck", ends);
  for (const std::string task : {"chief/0", "ps/0", "worker/0"}) {
    EXPECT_THAT(ends[task].lines, ElementsAre(HasSubstr("worker/1: exc")));
  }
}

TEST(FaultsTest, ALossThatIsNoNumber) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers(), OnPs()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("the gradient of network/dense_0/kernel has nan at element 0",
                 RunWith("nan", strategy));
  }
}

TEST(FaultsTest, AReplicasValueOfAnotherShape) {
  for (const Way& strategy : {Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("replicas have values of the shapes [] and [2]",
                 RunWith("shape", strategy));
  }
}

TEST(FaultsTest, AScopeOfAnotherStrategy) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("a scope of another strategy is open",
                 RunWith("scope", strategy));
  }
}

TEST(FaultsTest, AVariableOfNoScope) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay(
        "optimizer sgd: variable outside was made under another strategy",
        RunWith("outside", strategy));
    ExpectAllSay("variable outside is used in a step of another strategy",
                 RunWith("outside_step", strategy));
  }
}

TEST(FaultsTest, AnotherModelOnAWorker) {
  ExpectAllSay(
      "worker/1 runs another program than worker/0: it has variable "
      "network/dense_0/kernel of shape [4, 5]",
      RunWith("model", TwoWorkers()));
  // The others go on without it.
  auto ends = RunWith("model", OnPs(), {"--iterations=30"});
  const Ended refused = ends["worker/0"];
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.lines,
              ElementsAre(HasSubstr("runs another program than the chief: "
                                    "model.layer[0]")));
  ends.erase("worker/0");
  for (const auto& [task, ended] : ends) EXPECT_EQ(ended.code, 0) << task;
}

TEST(FaultsTest, AWorkerThatEndsEarly) {
  ExpectAllSay(
      "all must do the same in the same order, and end after as many "
      "steps",
      RunWith("early", TwoWorkers()));
  // Others take its iterations.
  for (const auto& [task, ended] :
       RunWith("early", OnPs(), {"--iterations=30"})) {
    EXPECT_EQ(ended.code, 0) << task << absl::StrJoin(ended.lines, "\n");
  }
}

TEST(FaultsTest, AFlagThatIsWrong) {
  ExpectAllSay("wrong_flag", RunWith("", Default(), {"--wrong_flag=1"}));
  ExpectAllSay("cuda:7", RunWith("", Default(), {"--devices=cuda:7"}));
  ExpectAllSay("--strategy", RunWith("", Default(), {"--strategy=mirored"}));
}

}  // namespace
}  // namespace parasol
