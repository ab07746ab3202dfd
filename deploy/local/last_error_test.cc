#include "deploy/local/last_error.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(LastErrorTest, WordsOfMainComeFirst) {
  EXPECT_EQ(LastError("I1120 23:17:03.1 a.cc:1] started\n"
                      "worker: old: loss is nan\n"
                      "worker: loss is not finite at step 7\n"
                      "E1120 23:17:03.1 worker/1 a.cc:2] leaving\n",
                      "worker"),
            "loss is not finite at step 7");
}

TEST(LastErrorTest, ElseTheLastErrorLine) {
  EXPECT_EQ(LastError("E1120 23:17:03.1 ps/0 a.cc:2] disk is full\n"
                      "I1120 23:17:03.1 ps/0 a.cc:2] leaving\n",
                      "ps"),
            "disk is full");
  EXPECT_EQ(
      LastError("F1120 23:17:03.1 ps/0 a.cc:2] check failed: a == b\n", "ps"),
      "check failed: a == b");
}

TEST(LastErrorTest, JsonLinesAreRead) {
  EXPECT_EQ(LastError(R"({"severity":"ERROR","message":"say \"x\""})"
                      "\n"
                      R"({"severity":"INFO","message":"leaving"})"
                      "\n{broken\n",
                      "ps"),
            "say \"x\"");
}

TEST(LastErrorTest, MainsLineOfJsonComesFirst) {
  EXPECT_EQ(LastError(R"({"severity":"ERROR","message":"no job","exit_code":2})"
                      "\n"
                      R"({"severity":"ERROR","message":"leaving"})",
                      "ps"),
            "no job");
}

TEST(LastErrorTest, ElseTheLastLineThatIsNoLogLine) {
  EXPECT_EQ(LastError("symbol lookup error: x\n"
                      "I1120 23:17:03.1 a.cc:1] started\n"
                      R"({"severity":"INFO","message":"started"})",
                      "ps"),
            "symbol lookup error: x");
  EXPECT_EQ(LastError("I1120 23:17:03.1 a.cc:1] started\n", "ps"), "");
  EXPECT_EQ(LastError("a\nerror while loading shared libraries: x\n\n", "ps"),
            "error while loading shared libraries: x");
  EXPECT_EQ(LastError("", "ps"), "");
}

}  // namespace
}  // namespace parasol
