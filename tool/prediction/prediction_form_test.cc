#include "tool/prediction/prediction_form.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

OutputSpec Output(const std::string& loss, int64_t outputs,
                  const std::string& name = "") {
  const auto spec = ResolveLoss(Parsed<job::Loss>(loss), outputs);
  EXPECT_OK(spec);
  return {.name = name, .loss = *spec};
}

PredictionForm Form(const std::vector<OutputSpec>& outputs,
                    const std::vector<std::string>& labels,
                    const PredictionForm::Options& options = {}) {
  std::vector<job::CsvLabel> parsed;
  for (const std::string& label : labels) {
    parsed.push_back(Parsed<job::CsvLabel>(label));
  }
  auto form = PredictionForm::Create(outputs, parsed, options);
  EXPECT_OK(form);
  return *std::move(form);
}

std::vector<std::string> Columns(const PredictionForm& form) {
  std::vector<std::string> columns;
  for (const PredictionField& field : form.fields()) {
    columns.insert(columns.end(), field.columns.begin(), field.columns.end());
  }
  return columns;
}

constexpr char kBinary[] = "binary_crossentropy { from_logits: true }";
constexpr char kClasses[] = "sparse_categorical_crossentropy {}";

TEST(PredictionFormTest, ABinaryOutputIsAProbabilityAndAClass) {
  PredictionForm form =
      Form({Output(kBinary, 1)}, {"column: 'y' class: ['no', 'yes']"});
  EXPECT_THAT(Columns(form), ElementsAre("probability", "class"));
  auto values = form.Read({2}, {});
  EXPECT_THAT(values[0].numbers, ElementsAre(FloatNear(.880797f, 1e-6)));
  EXPECT_EQ(values[1].text, "yes");
  // As accuracy counts: a logit of 0 is a no.
  values = form.Read({0}, {});
  EXPECT_THAT(values[0].numbers, ElementsAre(.5f));
  EXPECT_EQ(values[1].text, "no");
  EXPECT_EQ(form.Read({1e-9f}, {})[1].text, "yes");
  values = form.Read({NAN}, {});
  EXPECT_TRUE(std::isnan(values[0].numbers[0]));
  EXPECT_EQ(values[1].text, "");
}

TEST(PredictionFormTest, ClassesHaveTheNamesThatTheJobSays) {
  for (const auto& [label, no, yes] :
       {std::tuple("", "0", "1"),
        std::tuple("positive: ['y', 'Y']", "not y", "y"),
        std::tuple("class: ['a', 'b']", "a", "b")}) {
    PredictionForm form = Form({Output(kBinary, 1)}, {label});
    EXPECT_EQ(form.Read({-1}, {})[1].text, no);
    EXPECT_EQ(form.Read({1}, {})[1].text, yes);
  }
}

TEST(PredictionFormTest, ProbabilitiesAreNoLogitsWhereTheLossSaysSo) {
  PredictionForm form =
      Form({Output("binary_crossentropy { from_logits: false }", 1)}, {""});
  const auto values = form.Read({.4f}, {});
  EXPECT_THAT(values[0].numbers, ElementsAre(.4f));
  EXPECT_EQ(values[1].text, "0");
}

TEST(PredictionFormTest, TheLargestOutputIsTheClass) {
  const std::string label = "class: ['setosa', 'a,b', 'virginica']";
  PredictionForm form = Form({Output(kClasses, 3)}, {label});
  EXPECT_THAT(Columns(form), ElementsAre("class", "probability"));
  auto values = form.Read({0, 1, 1}, {});
  EXPECT_EQ(values[0].text, "a,b");
  EXPECT_THAT(values[1].numbers, ElementsAre(FloatNear(.422319f, 1e-6)));
  EXPECT_EQ(form.Read({0, NAN, 1}, {})[0].text, "");

  form = Form({Output(kClasses, 3)}, {label}, {.all_probabilities = true});
  EXPECT_THAT(Columns(form),
              ElementsAre("class", "probability", "probability_setosa",
                          "probability_a,b", "probability_virginica"));
  values = form.Read({0, 1, 1}, {});
  EXPECT_THAT(values[2].numbers,
              ElementsAre(FloatNear(.155362f, 1e-6), FloatNear(.422319f, 1e-6),
                          FloatNear(.422319f, 1e-6)));
}

TEST(PredictionFormTest, OtherLossesHaveNumbers) {
  EXPECT_THAT(Columns(Form({Output("mean_squared_error {}", 1)}, {""})),
              ElementsAre("prediction"));
  EXPECT_THAT(Columns(Form({Output("mean_squared_error {}", 2)}, {""})),
              ElementsAre("prediction_0", "prediction_1"));
  PredictionForm labels = Form({Output(kBinary, 2)}, {""});
  EXPECT_THAT(Columns(labels), ElementsAre("probability_0", "probability_1"));
  EXPECT_THAT(labels.Read({0, 0}, {})[0].numbers, ElementsAre(.5f, .5f));
  PredictionForm margin = Form({Output("hinge {}", 1)}, {"positive: 'yes'"});
  EXPECT_THAT(Columns(margin), ElementsAre("prediction", "class"));
  const auto values = margin.Read({3}, {});
  EXPECT_THAT(values[0].numbers, ElementsAre(3));
  EXPECT_EQ(values[1].text, "yes");
}

TEST(PredictionFormTest, NamesOfOutputsAreInFront) {
  const std::vector<OutputSpec> outputs = {
      Output(kBinary, 1, "click"), Output("huber { delta: 1 }", 1, "minutes")};
  PredictionForm form = Form(outputs, {"", ""});
  EXPECT_THAT(Columns(form), ElementsAre("click_probability", "click_class",
                                         "minutes_prediction"));
  EXPECT_THAT(form.Read({0, 7}, {})[2].numbers, ElementsAre(7));
  form = Form(outputs, {"", ""}, {.raw = true});
  EXPECT_THAT(Columns(form), ElementsAre("click", "minutes"));
  EXPECT_THAT(form.Read({2, 7}, {})[0].numbers, ElementsAre(2));
  form = Form(outputs, {"", ""}, {.as_array = true});
  EXPECT_THAT(Columns(form), ElementsAre("outputs_0", "outputs_1"));
  EXPECT_THAT(form.Read({0, 7}, {})[0].numbers, ElementsAre(.5f, 7));
  form = Form(outputs, {"", ""}, {.raw = true, .as_array = true});
  EXPECT_THAT(form.Read({2, 7}, {})[0].numbers, ElementsAre(2, 7));
}

TEST(PredictionFormTest, KeptColumnsAreInFrontAndKeepTheirNames) {
  const std::vector<OutputSpec> outputs = {Output(kBinary, 1)};
  PredictionForm form = Form(outputs, {""}, {.kept = {"id", "name"}});
  EXPECT_THAT(Columns(form), ElementsAre("id", "name", "probability", "class"));
  const auto values = form.Read({1}, {"7", "x"});
  EXPECT_EQ(values[0].text, "7");
  EXPECT_EQ(values[1].text, "x");
  EXPECT_EQ(values[3].text, "1");
  form = Form(outputs, {""}, {.kept = {"class"}});
  EXPECT_THAT(Columns(form),
              ElementsAre("class", "predicted_probability", "predicted_class"));
  for (const std::vector<std::string>& kept :
       {std::vector<std::string>{"id", "id"}, {"class", "predicted_class"}}) {
    EXPECT_THAT(
        PredictionForm::Create(outputs, {job::CsvLabel()}, {.kept = kept})
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--keep: ")));
  }
}

TEST(PredictionFormTest, LabelsAreThoseThatTrainingHad) {
  const auto job = Parsed<job::Job>(
      "train { csv { label { column: 'a' positive: 'y' } } } "
      "eval { csv { label { column: 'b' } } }");
  ASSERT_EQ(LabelsOfOutputs(job).size(), 1u);
  EXPECT_EQ(LabelsOfOutputs(job)[0].column(), "a");
  const auto named = Parsed<job::Job>(
      "model { output { name: 'o' label { column: 'c' } } output {} }");
  ASSERT_EQ(LabelsOfOutputs(named).size(), 2u);
  EXPECT_EQ(LabelsOfOutputs(named)[0].column(), "c");
}

TEST(PredictionFormTest, ClassesOfParquetFilesHaveTheirNames) {
  const auto trained = Parsed<job::Job>(
      "train { parquet { label { column: 'a' class: ['no', 'yes'] } } } "
      "eval { csv { label { column: 'b' } } }");
  ASSERT_EQ(LabelsOfOutputs(trained).size(), 1u);
  EXPECT_THAT(LabelsOfOutputs(trained)[0].class_(), ElementsAre("no", "yes"));
  const auto evaluated = Parsed<job::Job>(
      "train { tfrecord { label: 'a' } } "
      "eval { parquet { label { column: 'a' positive: 'yes' } } }");
  ASSERT_EQ(LabelsOfOutputs(evaluated).size(), 1u);
  EXPECT_THAT(LabelsOfOutputs(evaluated)[0].positive(), ElementsAre("yes"));
  EXPECT_EQ(LabelsOfOutputs(job::Job()).size(), 1u);
}

}  // namespace
}  // namespace parasol
