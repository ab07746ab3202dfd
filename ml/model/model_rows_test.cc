// Models that look ids up in sparse tables.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using reference::Matrix;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Each example has a user and a list of items, which are in one table; items
// are in a narrow one too. Nobody reads the last table.
constexpr char kFactors[] =
    "input { name: 'user' ids { column { name: 'u' identity { num_ids: 100 } "
    "} } } "
    "input { name: 'items' ids {} }"
    "sparse_table { name: 'factors' width: 3 }"
    "sparse_table { name: 'biases' width: 2 }"
    "sparse_table { name: 'spare' width: 5 }"
    "layer { name: 'e' embedding { table: 'factors' %s } input: 'user' }"
    "layer { name: 'u' flatten {} }"
    "layer { name: 'i' embedding_bag { table: 'factors' %s } input: 'items' }"
    "layer { add {} input: ['u', 'i'] }"
    "layer { name: 'd' dense { units: 2 } }"
    "layer { name: 'b' embedding_bag { table: 'biases' } input: 'items' }"
    "layer { add {} input: ['d', 'b'] }";

std::string Factors(const std::string& embedding_fields = "") {
  std::string text = kFactors;
  for (int lookup = 0; lookup < 2; ++lookup) {
    text.replace(text.find("%s"), 2, embedding_fields);
  }
  return text;
}

Batch FactorsBatch() {
  return {.size = 3,
          .ids = {{.offsets = {0, 1, 2, 3}, .ids = {7, 40, 7}},
                  {.offsets = {0, 3, 3, 4},
                   .ids = {9, 40, 9, uint64_t{1} << 60},
                   .weights = {1, .5, -2, .25}}},
          .labels = {0, 1, 1}};
}

// Rows by table and id.
using TableRows = std::map<std::pair<size_t, uint64_t>, std::vector<double>>;

class ModelRowsTest : public ModelTestBase {
 protected:
  // Random rows, written to the staged batch.
  static TableRows Fill(const StagedBatch& staged) {
    TableRows values;
    for (const StagedBatch::Rows& rows : staged.rows()) {
      if (rows.ids.empty()) continue;
      const size_t width = rows.values.size() / rows.ids.size();
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const Matrix row = RandomMatrix(1, width, rows.ids[i] % 1000);
        std::copy(row.values.begin(), row.values.end(),
                  rows.values.begin() + i * width);
        values[{rows.table, rows.ids[i]}] = row.values;
      }
    }
    return values;
  }

  static TableRows RowGradients(Model& model, StagedBatch& staged) {
    TableRows gradients;
    std::vector<size_t> tables;
    const auto keep = [&](size_t table, absl::Span<const uint64_t> ids,
                          absl::Span<const float> values) {
      tables.push_back(table);
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto row = values.subspan(i * model.tables()[table].width,
                                        model.tables()[table].width);
        gradients[{table, ids[i]}].assign(row.begin(), row.end());
      }
    };
    EXPECT_OK(model.Gradients(staged, /*seed=*/1,
                              {.variable = IgnoreVariable, .rows = keep}));
    EXPECT_THAT(tables, ElementsAre(0, 1, 2)) << "every table once";
    return gradients;
  }
};

// The mean loss of kFactors in double.
double FactorsLoss(const Values& variables, const TableRows& rows,
                   const Batch& batch) {
  Matrix sum(batch.size, 3), bias(batch.size, 2);
  const IdFeature& items = batch.ids[1];
  for (int64_t i = 0; i < batch.size; ++i) {
    const std::vector<double>& user = rows.at({0, batch.ids[0].ids[i]});
    for (int k = 0; k < 3; ++k) sum.at(i, k) += user[k];
    for (int32_t j = items.offsets[i]; j < items.offsets[i + 1]; ++j) {
      const double weight = items.weights[j];
      const std::vector<double>& item = rows.at({0, items.ids[j]});
      for (int k = 0; k < 3; ++k) sum.at(i, k) += weight * item[k];
      const std::vector<double>& narrow = rows.at({1, items.ids[j]});
      for (int k = 0; k < 2; ++k) bias.at(i, k) += weight * narrow[k];
    }
  }
  Matrix kernel(3, 2);
  kernel.values.assign(variables[0].begin(), variables[0].end());
  Matrix logits = reference::Affine(sum, kernel,
                                    {variables[1].begin(), variables[1].end()});
  for (size_t i = 0; i < logits.values.size(); ++i) {
    logits.values[i] += bias.values[i];
  }
  double loss = 0;
  for (double each : reference::SoftmaxCrossEntropy(
                         logits, {batch.labels.begin(), batch.labels.end()})
                         .loss) {
    loss += each;
  }
  return loss / batch.size;
}

void ExpectDifferences(const TableRows& got, TableRows rows,
                       const std::function<double(const TableRows&)>& loss) {
  ASSERT_EQ(got.size(), rows.size());
  constexpr double kStep = 1e-5;
  for (auto& [key, row] : rows) {
    SCOPED_TRACE(testing::Message()
                 << "table " << key.first << ", id " << key.second);
    for (size_t k = 0; k < row.size(); ++k) {
      const double center = row[k];
      row[k] = center + kStep;
      const double above = loss(rows);
      row[k] = center - kStep;
      const double below = loss(rows);
      row[k] = center;
      EXPECT_NEAR(got.at(key)[k], (above - below) / (2 * kStep), 2e-6);
    }
  }
}

TEST_P(ModelRowsTest, ABatchNamesEachRowOfATableOnceForAllLayers) {
  const std::unique_ptr<Model> model = Make(Factors());
  const auto staged = model->NewStagedBatch();
  const Batch batch = FactorsBatch();
  ASSERT_OK(model->Stage(batch, *staged));
  ASSERT_THAT(staged->rows(), SizeIs(3));
  EXPECT_THAT(staged->rows()[0].ids,
              UnorderedElementsAre(7, 40, 9, uint64_t{1} << 60));
  EXPECT_THAT(staged->rows()[0].values, SizeIs(4 * 3));
  EXPECT_THAT(staged->rows()[1].ids,
              UnorderedElementsAre(9, 40, uint64_t{1} << 60));
  EXPECT_THAT(staged->rows()[1].values, SizeIs(3 * 2));
  EXPECT_THAT(staged->rows()[2].ids, IsEmpty());
  EXPECT_EQ(staged->rows()[2].table, 2);
  EXPECT_EQ(model->tables()[1].name, "biases");
  EXPECT_EQ(model->tables()[1].width, 2);
}

TEST_P(ModelRowsTest, RowGradientsAreTheDifferencesOfTheMeanLoss) {
  const std::unique_ptr<Model> model = Make(Factors());
  const Values variables = RandomValues(*model);
  SetAll(*model, variables);
  const auto staged = model->NewStagedBatch();
  const Batch batch = FactorsBatch();
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_OK(model->Stage(batch, *staged));
    const TableRows rows = Fill(*staged);
    ExpectDifferences(RowGradients(*model, *staged), rows,
                      [&](const TableRows& values) {
                        return FactorsLoss(variables, values, batch);
                      });
  }
}

TEST_P(ModelRowsTest, L2OfRowsCountsEachRowOfTheBatchOnce) {
  const std::unique_ptr<Model> model = Make(Factors("l2: .5"));
  const Values variables = RandomValues(*model);
  SetAll(*model, variables);
  const auto staged = model->NewStagedBatch();
  const Batch batch = FactorsBatch();
  ASSERT_OK(model->Stage(batch, *staged));
  const TableRows rows = Fill(*staged);
  const auto loss = [&](const TableRows& values) {
    double l2 = 0;
    for (const auto& [key, row] : values) {
      for (double w : row) l2 += key.first == 0 ? .5 * w * w : 0;
    }
    return FactorsLoss(variables, values, batch) + l2;
  };
  ExpectDifferences(RowGradients(*model, *staged), rows, loss);
  ASSERT_OK_AND_ASSIGN(const EvaluatedBatch evaluated,
                       model->Evaluate(*staged));
  EXPECT_NEAR(evaluated.result.loss_sum / 3, loss(rows), 1e-5);
}

TEST_P(ModelRowsTest, RowGradientsStayUntilTheSecondNextStep) {
  const std::unique_ptr<Model> model = Make(Factors());
  SetAll(*model, RandomValues(*model));
  const auto staged = model->NewStagedBatch();
  const Batch batch = FactorsBatch();
  ASSERT_OK(model->Stage(batch, *staged));
  Fill(*staged);
  absl::Span<const uint64_t> ids;
  absl::Span<const float> sent;
  const auto keep = [&](size_t table, absl::Span<const uint64_t> table_ids,
                        absl::Span<const float> gradients) {
    if (table != 0) return;
    ids = table_ids;
    sent = gradients;
  };
  ASSERT_OK(
      model->Gradients(*staged, 1, {.variable = IgnoreVariable, .rows = keep}));
  const std::vector<float> before(sent.begin(), sent.end());
  Batch other = FactorsBatch();
  other.ids[0].ids = {1, 2, 3};
  ASSERT_OK(model->Stage(other, *staged));
  Fill(*staged);
  RowGradients(*model, *staged);
  EXPECT_THAT(sent, testing::ElementsAreArray(before));
  EXPECT_THAT(ids, UnorderedElementsAre(7, 40, 9, uint64_t{1} << 60));
}

TEST_P(ModelRowsTest, BatchesOfManySizesAreLookedUpAfresh) {
  const std::unique_ptr<Model> model = Make(Factors());
  const Values variables = RandomValues(*model);
  SetAll(*model, variables);
  const auto staged = model->NewStagedBatch();
  for (const int64_t size : {2, 50, 1, 7, 200, 3}) {
    SCOPED_TRACE(size);
    Batch batch = {.size = size, .ids = std::vector<IdFeature>(2)};
    batch.ids[0].offsets = batch.ids[1].offsets = {0};
    for (int64_t i = 0; i < size; ++i) {
      batch.labels.push_back(i % 2);
      batch.ids[0].ids.push_back(i * i % 31);
      batch.ids[0].offsets.push_back(i + 1);
      for (int64_t j = 0; j < i % 3; ++j) {
        batch.ids[1].ids.push_back((i + 5 * j) % 40);
        batch.ids[1].weights.push_back(.5f + j);
      }
      batch.ids[1].offsets.push_back(batch.ids[1].ids.size());
    }
    ASSERT_OK(model->Stage(batch, *staged));
    const TableRows rows = Fill(*staged);
    ASSERT_OK_AND_ASSIGN(const EvaluatedBatch evaluated,
                         model->Evaluate(*staged));
    EXPECT_NEAR(evaluated.result.loss_sum / size,
                FactorsLoss(variables, rows, batch), 1e-5);
  }
}

// The ids are looked up once then; weights and tables remain their own.
TEST_P(ModelRowsTest, TwoInputsMayHaveTheSameIds) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'a' ids {} } input { name: 'b' ids {} }"
      "sparse_table { name: 't' width: 2 } sparse_table { name: 'u' width: 2 }"
      "sparse_table { name: 'spare' width: 1 }"
      "layer { name: 'ta' embedding_bag { table: 't' } input: 'a' }"
      "layer { name: 'ub' embedding_bag { table: 'u' } input: 'b' }"
      "layer { add {} input: ['ta', 'ub'] }");
  const IdFeature ids = {.offsets = {0, 2, 5}, .ids = {7, 3, 3, 7, 7}};
  IdFeature others = ids;
  others.weights = {1, .5, -2, .25, 2};
  Batch batch = {.size = 2, .ids = {ids, others}, .labels = {0, 1}};
  const auto staged = model->NewStagedBatch();
  for (const uint64_t last : {7, 8, 7, 3}) {
    SCOPED_TRACE(last);
    batch.ids[1].ids.back() = last;
    ASSERT_OK(model->Stage(batch, *staged));
    const TableRows rows = Fill(*staged);
    const auto loss = [&](const TableRows& values) {
      Matrix logits(2, 2);
      for (size_t table = 0; table < 2; ++table) {
        const IdFeature& of = batch.ids[table];
        for (int i = 0; i < 2; ++i) {
          for (int32_t j = of.offsets[i]; j < of.offsets[i + 1]; ++j) {
            const double weight = of.weights.empty() ? 1 : of.weights[j];
            const std::vector<double>& row = values.at({table, of.ids[j]});
            for (int k = 0; k < 2; ++k) logits.at(i, k) += weight * row[k];
          }
        }
      }
      const auto all = reference::SoftmaxCrossEntropy(logits, {0, 1}).loss;
      return (all[0] + all[1]) / 2;
    };
    ExpectDifferences(RowGradients(*model, *staged), rows, loss);
  }
}

TEST_P(ModelRowsTest, ATableAloneIsEnoughToTrain) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'a' ids {} } sparse_table { name: 't' width: 2 }"
      "layer { embedding_bag { table: 't' } }");
  EXPECT_THAT(model->variables(), IsEmpty());
}

TEST_P(ModelRowsTest, AColumnThatOnlyBagsReadMayHaveSeveralValues) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'a' ids { column { name: 'a' identity { num_ids: 9 } } } }"
      "sparse_table { name: 't' width: 2 }"
      "layer { embedding_bag { table: 't' } }");
  const auto staged = model->NewStagedBatch();
  EXPECT_OK(model->Stage(
      {.size = 2,
       .ids = {{.offsets = {0, 3, 4}, .ids = {1, 2, 3, 1}, .weights = {}}},
       .labels = {0, 1}},
      *staged));
}

TEST_P(ModelRowsTest, IdsThatDoNotFitAreNamed) {
  const std::unique_ptr<Model> model = Make(Factors());
  const auto staged = model->NewStagedBatch();
  struct Case {
    std::string want;
    std::function<void(Batch&)> change;
  };
  const Case cases[] = {
      {"input \"user\": a batch of 3 examples has 3 offsets, not 4",
       [](Batch& b) { b.ids[0].offsets.pop_back(); }},
      {"input \"user\": example 1 has 0 ids, the model's input 1",
       [](Batch& b) {
         b.ids[0] = {{0, 1, 1, 2}, {1, 2}, {}};
       }},
      {"input \"items\": offsets are from 0 to 3 for 4 ids",
       [](Batch& b) {
         b.ids[1].offsets = {0, 3, 3, 3};
       }},
      {"input \"items\": offsets are from 1 to 4",
       [](Batch& b) {
         b.ids[1].offsets = {1, 3, 3, 4};
       }},
      {"input \"items\": offset 1 behind 3 of example 1",
       [](Batch& b) {
         b.ids[1].offsets = {0, 3, 1, 4};
       }},
      {"input \"items\": 4 ids have 3 weights",
       [](Batch& b) { b.ids[1].weights.pop_back(); }},
      {"0 tensors and 1 id lists, the model has 0 and 2",
       [](Batch& b) { b.ids.pop_back(); }},
      {"3 examples has 2 weights",
       [](Batch& b) {
         b.weights = {1, 1};
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    Batch batch = FactorsBatch();
    c.change(batch);
    EXPECT_THAT(
        model->Stage(batch, *staged),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

// The mean over the steps of a sequence is the mean of a bag: outputs and all
// gradients, of rows that examples have in common and none that they lack.
TEST_P(ModelRowsTest, TheMaskedMeanOfASequenceIsTheMeanOfItsBag) {
  const std::string table = "sparse_table { name: 't' width: 3 } ";
  const std::string last = "layer { name: 'd' dense { units: 2 } }";
  const std::unique_ptr<Model> steps =
      Make("input { name: 'x' ids { sequence { length: 4 } } } " + table +
           "layer { name: 'e' input: 'x' embedding { table: 't' l2: .01 } } "
           "layer { input: ['e', 'x.mask'] global_average_pool1d {} } " +
           last);
  const std::unique_ptr<Model> bag =
      Make("input { name: 'x' ids {} } " + table +
           "layer { name: 'e' input: 'x' embedding_bag { table: 't' "
           "combiner: MEAN l2: .01 } } " +
           last);
  const Batch batch = {
      .size = 4,
      .ids = {{.offsets = {0, 3, 3, 7, 8}, .ids = {7, 40, 7, 9, 40, 1, 7, 9}}},
      .labels = {0, 1, 1, 0}};
  std::vector<Values> gradients;
  std::vector<TableRows> rows;
  for (Model* const model : {steps.get(), bag.get()}) {
    SetAll(*model, RandomValues(*model));
    const auto staged = model->NewStagedBatch();
    ASSERT_OK(model->Stage(batch, *staged));
    EXPECT_THAT(staged->rows()[0].ids, UnorderedElementsAre(1, 7, 9, 40));
    Fill(*staged);
    ASSERT_OK_AND_ASSIGN(const EvaluatedBatch evaluated,
                         model->Evaluate(*staged));
    gradients.push_back({{evaluated.outputs.begin(), evaluated.outputs.end()}});
    rows.emplace_back();
    ASSERT_OK(model->Gradients(
        *staged, /*seed=*/1,
        {.variable =
             [&](size_t, absl::Span<const float> gradient) {
               gradients.back().emplace_back(gradient.begin(), gradient.end());
             },
         .rows =
             [&](size_t, absl::Span<const uint64_t> ids,
                 absl::Span<const float> values) {
               for (size_t i = 0; i < ids.size(); ++i) {
                 rows.back()[{0, ids[i]}].assign(values.begin() + i * 3,
                                                 values.begin() + i * 3 + 3);
               }
             }}));
  }
  ASSERT_EQ(gradients[0].size(), 3);
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_THAT(gradients[0][i], Pointwise(FloatNear(1e-6), gradients[1][i]));
  }
  ASSERT_THAT(rows[0], SizeIs(4));
  for (const auto& [key, row] : rows[0]) {
    for (size_t k = 0; k < row.size(); ++k) {
      EXPECT_NEAR(row[k], rows[1].at(key)[k], 1e-6) << key.second;
    }
  }
}

TEST_P(ModelRowsTest, ASequenceOfTooManyStepsIsRefused) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'x' ids { sequence { length: 2 } } } "
      "sparse_table { name: 't' width: 3 } "
      "layer { input: 'x' embedding { table: 't' } } "
      "layer { flatten {} } layer { dense { units: 2 } }");
  const auto staged = model->NewStagedBatch();
  EXPECT_THAT(
      model->Stage({.size = 2,
                    .ids = {{.offsets = {0, 2, 5}, .ids = {1, 2, 3, 4, 5}}},
                    .labels = {0, 1}},
                   *staged),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("input \"x\": example 1 has 3 ids, the model's "
                         "sequence at most 2")));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelRowsTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
