#include "cluster/inspection/cut_text.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/chief.pb.h"

namespace parasol {
namespace {

TEST(CutTextTest, WhatIsCutSaysSo) {
  const std::string text(20, 'x');
  EXPECT_EQ(CutText(text, 20), text);
  EXPECT_EQ(CutText(text, 19), "xxxxxxxxxxxx\n(cut)\n");
  EXPECT_EQ(CutText("", 16), "");
}

// protobuf refuses a whole heartbeat that has a text which is no UTF-8.
TEST(CutTextTest, WhateverATextHasAHeartbeatWithItCanBeRead) {
  const std::string cut_letter = std::string(12, 'x') + "\u00e4" + "yyyyyyy";
  for (const auto& [text, shown] :
       {std::pair<std::string, std::string>{"f\xff(\xc3)\n", "f?(?)\n"},
        {"f\u00e4\t\x7f\n", "f????\n"},
        {cut_letter, "xxxxxxxxxxxx?\n(cut)\n"}}) {
    wire::HeartbeatRequest request;
    request.mutable_inspection()->set_stacks(CutText(text, 20));
    EXPECT_EQ(request.inspection().stacks(), shown);
    wire::HeartbeatRequest received;
    EXPECT_TRUE(received.ParseFromString(request.SerializeAsString()));
  }
}

}  // namespace
}  // namespace parasol
