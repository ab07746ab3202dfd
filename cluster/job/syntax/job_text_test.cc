#include "cluster/job/syntax/job_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> FaultsOf(const JobText& text) {
  std::vector<std::string> lines;
  for (const TextFault& fault : text.faults()) {
    lines.push_back(absl::StrCat(fault.place.line, ":", fault.place.column,
                                 ": ", fault.message));
  }
  return lines;
}

TEST(JobTextTest, ATextWithoutFaultsIsTheJob) {
  const JobText text = JobText::Parse("name: 'x' # a comment {\nseed: 3");
  EXPECT_THAT(text.faults(), IsEmpty());
  ASSERT_TRUE(text.job().has_value());
  EXPECT_EQ(text.job()->seed(), 3);
}

TEST(JobTextTest, AllNamesThatAreWrongAreFoundAndTheMeantOnesTaken) {
  const JobText text = JobText::Parse(
      "nmae: 'x'\n"
      "model {\n"
      "  layer { dens { unit: 3 activation: RELUU } }\n"
      "  layr { dense { units: 4 activatoin: TANH } }\n"
      "}\n"
      "ende { steps: 5 }\n");
  EXPECT_THAT(
      FaultsOf(text),
      ElementsAre(
          "1:1: \"nmae\" is not a field of Job; did you mean \"name\"?",
          "3:11: \"dens\" is not a field of Layer; did you mean \"dense\"?",
          "3:18: \"unit\" is not a field of Dense; did you mean \"units\"?",
          StartsWith("3:26: activation: "),
          "4:3: \"layr\" is not a field of Model; did you mean \"layer\"?",
          "4:27: \"activatoin\" is not a field of Dense; did you mean "
          "\"activation\"?",
          "6:1: \"ende\" is not a field of Job; did you mean \"end\"?"));
  EXPECT_THAT(FaultsOf(text)[3], testing::HasSubstr("did you mean \"RELU\"?"));
  ASSERT_TRUE(text.job().has_value());
  EXPECT_EQ(text.job()->name(), "x");
  ASSERT_EQ(text.job()->model().layer_size(), 2);
  EXPECT_EQ(text.job()->model().layer(0).dense().units(), 3);
  EXPECT_EQ(text.job()->model().layer(0).dense().activation(), job::RELU);
  EXPECT_EQ(text.job()->model().layer(1).dense().activation(), job::TANH);
  EXPECT_EQ(text.job()->end().steps(), 5);
}

TEST(JobTextTest, WhatIsNoValueIsLeftOutWithItsField) {
  const JobText text = JobText::Parse(
      "seed: one\n"
      "seed: 4\n"
      "name: 5, end { steps: [1, 2] epochs: \"x\" }\n"
      "train { batch_size 8 shuffle_buffer: -x }\n"
      "colour: { red: 3 { } }\n");
  EXPECT_THAT(
      FaultsOf(text),
      ElementsAre(StartsWith("1:1: seed: "), StartsWith("3:1: name: "),
                  StartsWith("3:16: steps: "), StartsWith("3:30: epochs: "),
                  StartsWith("4:9: batch_size: "),
                  StartsWith("4:22: shuffle_buffer: "),
                  StartsWith("5:1: \"colour\" is not a field of Job, "
                             "which has: name, seed, ")));
  ASSERT_TRUE(text.job().has_value());
  EXPECT_EQ(text.job()->seed(), 4);
  EXPECT_TRUE(text.IsAtFault("end.steps: is not set"));
  EXPECT_TRUE(text.IsAtFault("end: neither is set"));
  EXPECT_FALSE(text.IsAtFault("train.idx: is not set"));
  EXPECT_FALSE(text.IsAtFault("model: is not set"));
}

TEST(JobTextTest, AValueThatNoneResemblesComesWithThoseThereAre) {
  EXPECT_THAT(
      FaultsOf(JobText::Parse(
          "strategy { mirrored { cross_device_ops: QUADRATIC } }")),
      ElementsAre("1:23: cross_device_ops: Unknown enumeration value of "
                  "\"QUADRATIC\" for field \"cross_device_ops\": it is one of "
                  "CROSS_DEVICE_OPS_UNSPECIFIED, HIERARCHICAL_COPY, "
                  "REDUCTION_TO_ONE_DEVICE, NCCL"));
}

TEST(JobTextTest, AFieldThatIsThereTwiceIsLeftOutOnce) {
  const JobText text = JobText::Parse(
      "seed: 1 seed: 2\n"
      "optimizer { adam {} sgd { learning_rate: 1 } }\n"
      "end { steps: 1 step: 2 }");
  EXPECT_THAT(FaultsOf(text),
              ElementsAre(StartsWith("1:9: seed: "), StartsWith("2:21: sgd: "),
                          StartsWith("3:16: \"step\" is not a field")));
  ASSERT_TRUE(text.job().has_value());
  EXPECT_EQ(text.job()->seed(), 1);
  EXPECT_EQ(text.job()->end().steps(), 1);
}

TEST(JobTextTest, ATextThatIsNoListOfFieldsHasOneFaultMore) {
  for (const char* text :
       {"model { layer {", "model } ", "{", "name: 'x", "end { steps: 3 ]",
        "seed: 3 4 5 6", "\x01\x02", ": : :"}) {
    SCOPED_TRACE(text);
    const JobText parsed = JobText::Parse(text);
    EXPECT_THAT(parsed.faults(), SizeIs(1));
    EXPECT_FALSE(parsed.job().has_value());
  }
}

TEST(JobTextTest, FaultsHaveALimit) {
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "colour: ", i, "\n");
  EXPECT_THAT(JobText::Parse(text).faults(), SizeIs(101));
}

// Whatever the bytes are, the parser comes to an end.
TEST(JobTextTest, DamagedTextIsHandled) {
  const std::string good =
      "model { layer { dense { units: 3 activation: RELU } } input_shape: [1, "
      "2] }\nend { epochs: 1.5 } name: 'a' 'b'";
  ASSERT_TRUE(JobText::Parse(good).job().has_value());
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'{', '}', ':', 'x', '\'', '[', '\0', '\xff', ','}) {
      std::string damaged = good;
      damaged[i] = c;
      EXPECT_LE(JobText::Parse(damaged).faults().size(), 101);
    }
    EXPECT_LE(JobText::Parse(good.substr(0, i)).faults().size(), 101);
  }
}

TEST(JobTextTest, FieldsHaveTheirPlaces) {
  const JobText text = JobText::Parse(
      "model {\n"
      "  layer { dense { unit: 3 kernel_l2: 1 } }\n"
      "  layer: { dense: { units: 3 } }\n"
      "}\n");
  const auto place = [&text](const char* path) {
    const auto found = text.PlaceOf(path);
    return found ? absl::StrCat(found->line, ":", found->column) : "none";
  };
  EXPECT_EQ(place("model.layer[1].dense.units: 3 is"), "3:21");
  // One letter more does not move what follows.
  EXPECT_EQ(place("model.layer[0].dense.kernel_l2"), "2:27");
  // The innermost message that is there.
  EXPECT_EQ(place("model.layer[1].dense.activation"), "3:12");
  EXPECT_EQ(place("model.layer[7].dense"), "1:1");
  EXPECT_EQ(place("model.layer[1] \"dense_1\": what"), "3:3");
  EXPECT_EQ(place("end: neither"), "none");
  EXPECT_EQ(place("--set=a: b"), "none");
  EXPECT_EQ(place(""), "none");
}

TEST(JobTextTest, FieldsCanBeAddedToAMessage) {
  const std::string text =
      "model {\n"
      "\tinput { name: 'x' dense {\n"
      "\t\tcolumn { name: 'a' },\tcolumn: < name: 'b' > ;\n"
      "\t} }\n"
      "}\n";
  const JobText parsed = JobText::Parse(text);
  const auto with = [&](const char* path) {
    const auto close = parsed.CloseOf(path);
    std::string changed = text;
    return close ? changed.insert(*close, "+") : "none";
  };
  EXPECT_THAT(with("model.input[0].dense.column[0]"),
              testing::HasSubstr("{ name: 'a' +}"));
  EXPECT_THAT(with("model.input[0].dense.column[1]"),
              testing::HasSubstr("< name: 'b' +>"));
  EXPECT_THAT(with("model.input[0].dense"), testing::HasSubstr("\t+} }"));
  EXPECT_EQ(with("model.input[0].dense.column[2]"), "none");
  EXPECT_EQ(with("train"), "none");
}

TEST(JobTextTest, AFieldIsFoundFromItsNameToTheEndOfItsValue) {
  const std::string text =
      "model { input { name: 'x' dense {\n"
      "\tcolumn { name: 'a' # one\n mean: 3; } column: [{ name: 'b' }]\n"
      "} } }\n";
  const JobText parsed = JobText::Parse(text);
  const auto field = [&](const char* path) {
    const auto range = parsed.FieldAt(path);
    return range ? text.substr(range->begin, range->end - range->begin)
                 : "none";
  };
  EXPECT_EQ(field("model.input[0].name"), "name: 'x'");
  EXPECT_EQ(field("model.input[0].dense.column[0]"),
            "column { name: 'a' # one\n mean: 3; }");
  EXPECT_EQ(field("model.input[0].dense.column[0].mean"), "mean: 3");
  EXPECT_EQ(field("model.input[0].dense.column[0].stddev"), "none");
  EXPECT_EQ(field("model.input[0].dense.column[1]"), "column: [{ name: 'b' }]");
  EXPECT_EQ(field("model.input[0].dense.column[2]"), "none");
}

}  // namespace
}  // namespace parasol
