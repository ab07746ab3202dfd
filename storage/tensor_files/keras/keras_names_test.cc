#include "storage/tensor_files/keras/keras_names.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Shaped {
  std::string path;
  std::vector<int64_t> shape;
};

Hdf5Contents ContentsWith(const std::vector<Shaped>& arrays) {
  Hdf5Contents contents;
  for (const auto& [path, shape] : arrays) {
    contents.arrays.push_back({path, "float32", shape, 0});
  }
  return contents;
}

absl::StatusOr<std::vector<std::string>> NamesOf(
    const std::vector<Shaped>& arrays, const std::string& config = "{}") {
  const absl::StatusOr<KerasConfig> parsed = ParseKerasConfig(config);
  EXPECT_OK(parsed);
  return KerasVariableNames(ContentsWith(arrays), *parsed);
}

// Two dense layers in a frozen model inside of a model, and one behind it.
constexpr char kNested[] = R"({
  "class_name": "Sequential",
  "config": {"layers": [
    {"class_name": "InputLayer", "config": {"name": "x"}},
    {"class_name": "Normalization", "config": {"name": "adapted"}},
    {"class_name": "Sequential", "config": {
      "name": "inner", "trainable": false, "layers": [
        {"class_name": "Dense", "config": {"name": "a"}},
        {"class_name": "Conv2DTranspose", "config": {"name": "b"}}]}},
    {"class_name": "Dense", "config": {"name": "c"}}]},
  "compile_config": {"optimizer": {
    "class_name": "AdamW", "config": {"learning_rate": 0.1}}}})";

std::vector<Shaped> NestedArrays(int64_t units_of_slot) {
  return {{"layers/dense/vars/0", {2, 3}},
          {"layers/dense/vars/1", {3}},
          {"layers/normalization/vars/0", {2}},
          {"layers/normalization/vars/1", {2}},
          {"layers/normalization/vars/2", {}},
          {"layers/sequential/layers/conv2d_transpose/vars/0", {1, 1, 2, 2}},
          {"layers/sequential/layers/dense/vars/0", {2, 2}},
          {"optimizer/vars/0", {}},
          {"optimizer/vars/1", {}},
          {"optimizer/vars/2", {2, units_of_slot}},
          {"optimizer/vars/3", {2, 3}},
          {"optimizer/vars/4", {3}},
          {"optimizer/vars/5", {3}}};
}

TEST(KerasNamesTest, ComeFromTheConfigurationWhereTheFileHasNone) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       NamesOf(NestedArrays(3), kNested));
  // What is frozen, or never trained, has no slots.
  EXPECT_THAT(
      names,
      ElementsAre("c/kernel", "c/bias", "adapted/mean", "adapted/variance",
                  "adapted/count", "inner/b/kernel", "inner/a/kernel",
                  "adam_w/iteration", "adam_w/learning_rate",
                  "adam_w/c_kernel_momentum", "adam_w/c_kernel_velocity",
                  "adam_w/c_bias_momentum", "adam_w/c_bias_velocity"));
}

TEST(KerasNamesTest, NadamHasANumberBehindItsSlots) {
  std::vector<Shaped> arrays = NestedArrays(3);
  arrays.push_back({"optimizer/vars/6", {}});
  ASSERT_OK_AND_ASSIGN(
      std::vector<std::string> names,
      NamesOf(arrays, absl::StrReplaceAll(kNested, {{"AdamW", "Nadam"}})));
  EXPECT_EQ(names[12], "nadam/c_bias_velocity");
  EXPECT_EQ(names[13], "optimizer/vars/6");
  arrays.back().shape = {3};
  ASSERT_OK_AND_ASSIGN(
      names,
      NamesOf(arrays, absl::StrReplaceAll(kNested, {{"AdamW", "Nadam"}})));
  EXPECT_EQ(names[12], "optimizer/vars/5");
}

TEST(KerasNamesTest, SlotsOfOtherShapesKeepTheirPaths) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       NamesOf(NestedArrays(4), kNested));
  EXPECT_EQ(names[9], "optimizer/vars/2");
  EXPECT_EQ(names[12], "optimizer/vars/5");
}

TEST(KerasNamesTest, LayersWithoutAnyNameAreNumberedAndMarked) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       NamesOf({{"layers/dense/vars/0", {2, 3}},
                                {"layers/dense_1/vars/0", {3, 1}},
                                {"layers/lstm/cell/vars/0", {2, 4}},
                                {"layers/lstm/cell/vars/1", {1, 4}},
                                {"layers/lstm/cell/vars/2", {4}},
                                {"optimizer/vars/0", {}},
                                {"optimizer/vars/1", {}}}));
  EXPECT_THAT(names, ElementsAre("layers/dense/kernel", "layers/dense_1/kernel",
                                 "layers/lstm/lstm_cell/kernel",
                                 "layers/lstm/lstm_cell/recurrent_kernel",
                                 "layers/lstm/lstm_cell/bias",
                                 "optimizer/iteration", "optimizer/vars/1"));
}

// One of two that may be there: nobody can say which.
TEST(KerasNamesTest, WhatCanNotBeToldIsRefusedUnlessTheConfigurationTells) {
  const std::vector<Shaped> one = {{"layers/layer_normalization/vars/0", {3}}};
  EXPECT_THAT(NamesOf(one).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/layer_normalization/ has 1 variables, "
                                 "and the file does not say which")));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, NamesOf(one, R"({
      "class_name": "Sequential", "config": {"layers": [
        {"class_name": "LayerNormalization",
         "config": {"name": "n", "scale": false, "center": true}}]}})"));
  EXPECT_THAT(names, ElementsAre("n/beta"));
}

TEST(KerasNamesTest, WhatIsNotKnownKeepsItsPlace) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      NamesOf({{"layers/mystery/vars/0", {3}}, {"other", {1}}}));
  EXPECT_THAT(names, ElementsAre("layers/mystery/vars/0", "other"));
}

TEST(KerasNamesTest, TwoVariablesOfOneNameAreRefused) {
  Hdf5Contents contents = ContentsWith(
      {{"layers/dense/vars/0", {2, 3}}, {"layers/dense_1/vars/0", {3, 1}}});
  contents.attributes["layers/dense/vars"]["name"] = "same";
  contents.attributes["layers/dense_1/vars"]["name"] = "same";
  EXPECT_THAT(KerasVariableNames(contents, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("two variables are called same/kernel: ")));
}

// All variables of a layer repeat its name.
TEST(KerasNamesTest, NamesAreNotLongerThanAnyModels) {
  Hdf5Contents contents = ContentsWith(
      {{"layers/dense/vars/0", {2, 3}}, {"layers/dense/vars/1", {3}}});
  contents.attributes["layers/dense/vars"]["name"] = std::string(4000, 'a');
  EXPECT_OK(KerasVariableNames(contents, {}));
  contents.attributes["layers/dense/vars"]["name"] = std::string(5000, 'a');
  EXPECT_THAT(KerasVariableNames(contents, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the name of a variable has 5007 bytes, of "
                                 "4096 at most: aaa")));
}

TEST(KerasNamesTest, OlderFilesHaveNamesAsTheyAre) {
  Hdf5Contents contents =
      ContentsWith({{"model_weights/hidden/hidden/kernel:0", {2, 3}},
                    {"optimizer_weights/Adam/hidden/kernel/m:0", {2, 3}},
                    {"optimizer_weights/Adam/iter:0", {}}});
  contents.attributes["model_weights"]["layer_names"] = "";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       KerasVariableNames(contents, {}));
  EXPECT_THAT(
      names, ElementsAre("hidden/kernel", "Adam/hidden/kernel/m", "Adam/iter"));
  // save_weights() of Keras 2.
  contents = ContentsWith({{"hidden/hidden/kernel:0", {2, 3}}});
  contents.attributes[""]["layer_names"] = "";
  EXPECT_EQ(KerasVariableNames(contents, {})->at(0), "hidden/kernel");
}

TEST(KerasNamesTest, FilesOfKeras30HaveTheLastPartsOfNames) {
  Hdf5Contents contents =
      ContentsWith({{"model_weights/hidden/kernel", {2, 3}},
                    {"model_weights/top_level_model_weights/scale", {}},
                    {"model_weights/y/kernel", {3, 1}},
                    {"optimizer_weights/iteration", {}}});
  contents.attributes["model_weights"]["layer_names"] = "";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       KerasVariableNames(contents, {}));
  EXPECT_THAT(names,
              ElementsAre("hidden/kernel", "scale", "y/kernel", "iteration"));
}

TEST(KerasNamesTest, OlderFilesSayIfIterationsAreGradients) {
  Hdf5Contents contents = ContentsWith(
      {{"model_weights/y/y/kernel", {2}},
       {"optimizer_weights/adam/iteration", {}},
       {"optimizer_weights/adam/y_kernel_gradient_accumulator", {2}}});
  contents.attributes["model_weights"]["layer_names"] = "";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       KerasVariableNames(contents, {}));
  EXPECT_THAT(names, ElementsAre("y/kernel", "optimizer_weights/adam/iteration",
                                 "adam/y_kernel_gradient_accumulator"));
}

// The model inside is a class of its own, so its layers have no names.
TEST(KerasNamesTest, NumberedLayersInsideOfAModelAreMarked) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      NamesOf({{"layers/mine/layers/dense/vars/0", {2, 2}}}, R"({
        "class_name": "Sequential", "config": {"layers": [
          {"class_name": "Mine", "config": {"name": "inner"}}]}})"));
  EXPECT_THAT(names, ElementsAre("inner/layers/dense/kernel"));
}

// A class of one's own may call its parts as Keras's does, and make them in
// another order.
TEST(KerasNamesTest, PartsOfOtherClassesHaveNoOrder) {
  const auto slot_name = [](const std::string& class_name) {
    const std::string layer = absl::StrCat("layers/", class_name, "/");
    const absl::StatusOr<std::vector<std::string>> names = NamesOf(
        {{absl::StrCat(layer, "query_dense/vars/0"), {2, 2}},
         {absl::StrCat(layer, "value_dense/vars/0"), {2, 2}},
         {"optimizer/vars/0", {}},
         {"optimizer/vars/1", {}},
         {"optimizer/vars/2", {2, 2}},
         {"optimizer/vars/3", {2, 2}}},
        absl::StrReplaceAll(
            R"({
      "class_name": "Sequential", "config": {"layers": [
        {"class_name": "CLASS", "config": {"name": "look"}}]},
      "compile_config": {"optimizer": {
        "class_name": "Lion", "config": {"learning_rate": 0.1}}}})",
            {{"CLASS", class_name == "mine" ? "Mine" : "MultiHeadAttention"}}));
    EXPECT_OK(names);
    return names->back();
  };
  EXPECT_EQ(slot_name("multi_head_attention"),
            "lion/look_value_kernel_momentum");
  EXPECT_EQ(slot_name("mine"), "optimizer/vars/3");
}

TEST(KerasNamesTest, VocabulariesMayBeLong) {
  std::string config = R"({"config": {"vocabulary": [0)";
  for (int i = 0; i < 200'000; ++i) config += ",1";
  EXPECT_OK(ParseKerasConfig(config + "]}}"));
}

TEST(KerasNamesTest, ConfigurationsThatAreNoJsonAreRefused) {
  EXPECT_THAT(
      ParseKerasConfig("{\"config\": ").status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
  // Values of other kinds than Keras's are nothing.
  for (const char* odd :
       {"{\"config\": 3}", "{\"config\": {\"layers\": {\"a\": 1}}}",
        "{\"config\": {\"layers\": [1, {\"class_name\": 2}, {\"class_name\": "
        "\"Dense\", \"config\": [], \"name\": null}]}, \"compile_config\": "
        "{\"optimizer\": {\"class_name\": \"SGD\", \"config\": []}}}"}) {
    EXPECT_OK(NamesOf(NestedArrays(3), odd)) << odd;
  }
}

}  // namespace
}  // namespace parasol
