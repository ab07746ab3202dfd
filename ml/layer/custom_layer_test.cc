#include "ml/layer/custom_layer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// y = factor · x, the factor a variable.
class Scale : public Layer {
 public:
  explicit Scale(const Shape& shape) {
    output_shape_ = shape;
    variables_ = {{.name = "factor", .shape = {1}}};
    variable_l2_ = {.5};
  }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(Device&,
                                                     int64_t) const override {
    return absl::UnimplementedError("the scale itself");
  }
};

// A Scale with a slip.
class BadScale : public Scale {
 public:
  BadScale(const Shape& shape, absl::string_view slip) : Scale(shape) {
    if (slip == "untrained") variables_[0].trained = false;
    if (slip == "l2") variable_l2_ = {.5, .5};
  }
};

const CustomLayerRegistration kBadScale(
    "bad_scale",
    [](const job::CustomLayer& spec, absl::Span<const LayerInput> inputs)
        -> absl::StatusOr<std::unique_ptr<const Layer>> {
      return std::make_unique<BadScale>(inputs[0].shape,
                                        ParameterOf(spec, "slip"));
    });

const CustomLayerRegistration kScale(
    "scale",
    [](const job::CustomLayer& spec, absl::Span<const LayerInput> inputs)
        -> absl::StatusOr<std::unique_ptr<const Layer>> {
      if (!ParameterOf(spec, "unknown").empty()) {
        return absl::InvalidArgumentError("an unknown parameter");
      }
      return std::make_unique<Scale>(inputs[0].shape);
    });

job::CustomLayer Declared(const std::string& text) {
  job::CustomLayer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

absl::StatusOr<std::unique_ptr<const Layer>> Make(const std::string& text) {
  const std::vector<LayerInput> inputs = {{.shape = {3}}};
  return MakeCustom(Declared(text), inputs);
}

TEST(CustomLayerTest, ADeclarationIsEnoughForShapesAndVariables) {
  ASSERT_OK_AND_ASSIGN(
      const auto layer,
      Make("type: 'elsewhere' output_shape: [2, 5] "
           "variable { name: 'kernel' shape: [3, 10] } "
           "variable { name: 'bias' shape: 10 initializer { zeros {} } }"));
  EXPECT_EQ(layer->output_shape(), Shape({2, 5}));
  ASSERT_EQ(layer->variables().size(), 2u);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_EQ(layer->variables()[0].shape, Shape({3, 10}));
  EXPECT_TRUE(layer->variables()[0].initializer.has_glorot_uniform());
  EXPECT_TRUE(layer->variables()[1].initializer.has_zeros());
  EXPECT_EQ(layer->variable_l2().size(), 2u);

  ASSERT_OK_AND_ASSIGN(const auto device, Device::Open("cpu"));
  EXPECT_THAT(layer->NewPass(*device, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no custom layer \"elsewhere\"")));
}

TEST(CustomLayerTest, ALayerThatIsLinkedInComputes) {
  ASSERT_OK_AND_ASSIGN(
      const auto layer,
      Make("type: 'scale' output_shape: 3 "
           "variable { name: 'factor' shape: 1 "
           "           initializer { constant { value: 2 } } }"));
  EXPECT_EQ(layer->variables()[0].initializer.constant().value(), 2);
  EXPECT_EQ(layer->variable_l2()[0], .5);
  ASSERT_OK_AND_ASSIGN(const auto device, Device::Open("cpu"));
  EXPECT_THAT(layer->NewPass(*device, 1),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(CustomLayerTest, AVariableMayBeOneThatIsNotTrained) {
  ASSERT_OK_AND_ASSIGN(
      const auto layer,
      Make("type: 'bad_scale' output_shape: 3 "
           "parameter { name: 'slip' value: 'untrained' } "
           "variable { name: 'factor' shape: 1 trainable: false }"));
  ASSERT_EQ(layer->variables().size(), 1u);
  EXPECT_FALSE(layer->variables()[0].trained);
  EXPECT_FALSE(layer->variables()[0].frozen);
}

TEST(CustomLayerTest, ADeclarationThatIsNotTheLayersIsRefused) {
  struct Case {
    std::string declaration;
    std::vector<std::string> words;
  };
  const std::string factor = " variable { name: 'factor' shape: 1 }";
  const Case cases[] = {
      {"type: 'scale' output_shape: 4" + factor,
       {"custom.output_shape is [4]", "output is [3]"}},
      {"type: 'scale' output_shape: 3", {"declares none", "factor [1]"}},
      {"type: 'scale' output_shape: 3 variable { name: 'factor' shape: 2 }",
       {"declares factor [2]", "has factor [1]"}},
      {"type: 'scale' output_shape: 3 parameter { name: 'unknown' value: 'x' }",
       {"an unknown parameter", ""}},
      {"type: 'bad_scale' output_shape: 3 "
       "parameter { name: 'slip' value: 'untrained' }" +
           factor,
       {"declares factor [1];", "has factor [1] trainable: false"}},
      {"type: 'scale' output_shape: 3 "
       "variable { name: 'factor' shape: 1 trainable: false }",
       {"declares factor [1] trainable: false;", "has factor [1]"}},
      {"type: 'bad_scale' output_shape: 3 "
       "parameter { name: 'slip' value: 'l2' }" +
           factor,
       {"has 1 variables", "an l2 of 2"}},
      {"output_shape: 3", {"custom.type", ""}},
      {"type: 'x'", {"custom.output_shape is not set", ""}},
      {"type: 'x' output_shape: 0", {"output_shape", "[0]"}},
      {"type: 'x' output_shape: 1 variable { shape: 1 }", {"name", ""}},
      {"type: 'x' output_shape: 1 variable { name: 'a' shape: -1 }",
       {"\"a\"", "[-1]"}},
      {"type: 'x' output_shape: 1 variable { name: 'a' } variable { name: 'a' "
       "}",
       {"two variables are called a", ""}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.declaration);
    EXPECT_THAT(Make(c.declaration),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.words[0]), HasSubstr(c.words[1]))));
  }
}

TEST(CustomLayerTest, ALayerWhoseCodeIsNotLinkedInIsNamed) {
  ASSERT_OK_AND_ASSIGN(
      const auto linked,
      Make("type: 'scale' output_shape: 3 variable { name: 'factor' shape: 1 "
           "}"));
  EXPECT_OK(linked->CheckCode());
  ASSERT_OK_AND_ASSIGN(const auto elsewhere,
                       Make("type: 'elsewhere' output_shape: 3"));
  EXPECT_THAT(elsewhere->CheckCode(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"elsewhere\"")));
}

TEST(CustomLayerTest, TwoLayersOfOneTypeAreABug) {
  EXPECT_DEATH(CustomLayerRegistration("scale", nullptr),
               "two are registered as custom layer \"scale\"");
}

}  // namespace
}  // namespace parasol
