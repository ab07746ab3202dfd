#include "ml/zoo/model_text.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/zoo/example_models.h"
#include "proto/job.pb.h"

namespace parasol::zoo {
namespace {

using testing::HasSubstr;

job::Model TwoLayers() {
  job::Model model;
  model.add_input_shape(2);
  model.add_input_shape(3);
  model.add_layer()->mutable_flatten();
  model.add_layer()->mutable_dense()->set_units(4);
  return model;
}

TEST(ModelTextTest, ALayerIsALine) {
  EXPECT_EQ(ModelText(TwoLayers()),
            "model {\n"
            "  input_shape: [2, 3]\n"
            "  layer { flatten {} }\n"
            "  layer { dense { units: 4 } }\n"
            "}\n");
}

TEST(ModelTextTest, ALayerThatIsTooLongForALineHasItsPartsOnLines) {
  job::Model model;
  job::Layer& layer = *model.add_layer();
  layer.set_name(std::string(60, 'n'));
  layer.add_input(std::string(60, 'i'));
  layer.mutable_add();
  EXPECT_EQ(ModelText(model),
            absl::StrCat("model {\n  layer {\n    name: \"", layer.name(),
                         "\"\n    input: \"", layer.input(0),
                         "\"\n    add {}\n  }\n}\n"));
}

TEST(ModelTextTest, ReadBackItIsTheModel) {
  for (const auto& [name, model] : ExampleModels()) {
    SCOPED_TRACE(name);
    job::Job job;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(ModelText(model), &job));
    EXPECT_EQ(job.model().SerializeAsString(), model.SerializeAsString());
  }
}

TEST(ModelTextTest, AllTextButTheModelStays) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       WithModel("# Why.\nname: \"a\"\nmodel {\n  layer {\n  "
                                 "}\n}\n# After.\nend {\n}\n",
                                 TwoLayers()));
  EXPECT_EQ(text, absl::StrCat("# Why.\nname: \"a\"\n", ModelText(TwoLayers()),
                               "# After.\nend {\n}\n"));
}

TEST(ModelTextTest, AJobWithoutAModelIsRefused) {
  for (const char* text :
       {"", "name: \"model {\"", "model {", "}\nmodel {\n"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(
        WithModel(text, TwoLayers()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model {")));
  }
}

}  // namespace
}  // namespace parasol::zoo
