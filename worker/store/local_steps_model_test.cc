#include "worker/store/local_steps_model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/testing/model_fixture.h"
#include "storage/shard_entry.h"
#include "worker/store/batch_part.h"
#include "worker/store/host_variables.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// The moving means of the normalization are not trained.
constexpr char kLayers[] =
    "input { name: 'x' dense { shape: 3 } }"
    "layer { name: 'n' batch_normalization {} }"
    "layer { name: 'h' dense { units: 5 activation: TANH } }"
    "layer { name: 'd' dense { units: 2 } }";

constexpr char kAdam[] =
    "adam { learning_rate: .02 beta_1: .9 beta_2: .99 epsilon: 1e-7 }";

job::Job JobWith(const std::string& inner, int steps, int batch) {
  job::Job job;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("optimizer { sgd { learning_rate: .7 momentum: .9 } }"
                   "train { batch_size: ",
                   steps * batch, " } parameter_server { local_steps { steps: ",
                   steps, " batch_size: ", batch, " inner { ", inner, " } } }"),
      &job));
  return job;
}

// A job of 6 steps in two fragments.
job::Job StreamedJob(const std::string& inner, int fragments, int overlap) {
  job::Job job = JobWith(inner, /*steps=*/6, /*batch=*/5);
  job::LocalSteps& local =
      *job.mutable_parameter_server()->mutable_local_steps();
  local.set_fragments(fragments);
  local.set_overlap_steps(overlap);
  return job;
}

class LocalStepsModelTest : public ModelTestBase {
 protected:
  // The differences that a pass gives; the others are empty.
  static Values DifferencesOf(Model& model, const Batch& batch, size_t pass) {
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    EXPECT_OK(model.Stage(batch, *staged));
    staged->pass = pass;
    Values differences(model.variables().size());
    EXPECT_OK(model.Gradients(
        *staged, /*seed=*/1,
        {.variable =
             [&](size_t index, absl::Span<const float> gradient) {
               differences[index].assign(gradient.begin(), gradient.end());
             },
         .rows = IgnoreRows}));
    return differences;
  }

  // Makes local steps [first, end) of a batch, each of 5 examples.
  void StepsOf(const Batch& batch, int first, int end,
               HostVariables& variables) {
    const std::unique_ptr<Model> model = Make(kLayers);
    for (int step = first; step < end && step * 5 < batch.size; ++step) {
      for (size_t i = 0; i < model->variables().size(); ++i) {
        Set(*model, i, *variables.Read(i, kValueArray));
      }
      Batch part;
      CopyPart(batch, step * 5, std::min<int64_t>(5, batch.size - step * 5),
               part);
      EXPECT_OK(
          Train(*model, part, [&](size_t i, absl::Span<const float> gradient) {
            variables.Apply(i, 0, gradient);
            variables.CountUpdate(i);
          }));
    }
  }

  static std::vector<float> ValueOf(HostVariables& variables, size_t i) {
    const absl::Span<const float> value = *variables.Read(i, kValueArray);
    return {value.begin(), value.end()};
  }

  static std::vector<float> Minus(const std::vector<float>& a,
                                  const std::vector<float>& b) {
    std::vector<float> result = a;
    for (size_t j = 0; j < b.size(); ++j) result[j] -= b[j];
    return result;
  }

  std::unique_ptr<Model> MakeLocal(const job::Job& job,
                                   LocalStepsOptions options = {}) {
    absl::StatusOr<std::unique_ptr<Model>> model =
        TakeLocalSteps(Make(kLayers), job, std::move(options));
    EXPECT_OK(model);
    return *std::move(model);
  }

  // Makes the same steps one by one, with `variables`' slots. Returns the
  // differences.
  Values StepByStep(const Batch& batch, int64_t size, HostVariables& variables,
                    const Values& begin) {
    const std::unique_ptr<Model> model = Make(kLayers);
    for (size_t i = 0; i < begin.size(); ++i) {
      EXPECT_OK(variables.Write(i, kValueArray, begin[i]));
    }
    for (int64_t first = 0; first < batch.size; first += size) {
      for (size_t i = 0; i < begin.size(); ++i) {
        Set(*model, i, *variables.Read(i, kValueArray));
      }
      Batch part;
      CopyPart(batch, first, std::min(size, batch.size - first), part);
      EXPECT_OK(
          Train(*model, part, [&](size_t i, absl::Span<const float> gradient) {
            variables.Apply(i, 0, gradient);
            variables.CountUpdate(i);
          }));
    }
    Values differences(begin.size());
    for (size_t i = 0; i < begin.size(); ++i) {
      const absl::Span<const float> end = *variables.Read(i, kValueArray);
      for (size_t j = 0; j < end.size(); ++j) {
        differences[i].push_back(begin[i][j] - end[j]);
      }
    }
    return differences;
  }
};

TEST_P(LocalStepsModelTest, AJobWithoutThemKeepsItsModel) {
  std::unique_ptr<Model> model = Make(kLayers);
  Model* const was = model.get();
  ASSERT_OK_AND_ASSIGN(model, TakeLocalSteps(std::move(model), {}));
  EXPECT_EQ(model.get(), was);
}

TEST_P(LocalStepsModelTest, GivesTheDifferenceOfItsStepsWithSlotsThatStay) {
  const job::Job job = JobWith(kAdam, /*steps=*/3, /*batch=*/8);
  const std::unique_ptr<Model> model = MakeLocal(job);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<HostVariables> variables,
      HostVariables::Create(model->variables(), JobOfLocalSteps(job)));
  ASSERT_OK(variables->Initialize(0));
  // The second batch has 2 steps and a part of one.
  for (const int64_t size : {24, 19}) {
    const Batch batch = RandomBatch(size, {3}, 2);
    const Values begin = RandomValues(*model);
    const Values want = StepByStep(batch, 8, *variables, begin);
    SetAll(*model, begin);
    EXPECT_EQ(GradientsOf(*model, batch), want) << size;
  }
}

TEST_P(LocalStepsModelTest, EachShardHasItsOwnSlots) {
  const job::Job job = JobWith(kAdam, 2, 8);
  const std::unique_ptr<Model> one = MakeLocal(job);
  const std::unique_ptr<Model> another = MakeLocal(job);
  const std::unique_ptr<Model> both = MakeLocal(job);
  for (int turn = 0; turn < 3; ++turn) {
    for (const int shard : {0, 1}) {
      Batch batch = RandomBatch(16, {3}, 2);
      batch.shard = shard;
      Model& alone = shard == 0 ? *one : *another;
      SetAll(alone, RandomValues(alone));
      SetAll(*both, RandomValues(*both));
      EXPECT_EQ(GradientsOf(*both, batch), GradientsOf(alone, batch));
    }
  }
}

// Its data end earlier than the other's in each epoch.
TEST_P(LocalStepsModelTest, AShardThatPausesKeepsItsSlots) {
  const job::Job job = JobWith(kAdam, 2, 8);
  const std::unique_ptr<Model> alone = MakeLocal(job);
  const std::unique_ptr<Model> both = MakeLocal(job);
  for (const int pause : {0, 20, 0}) {
    Batch batch = RandomBatch(16, {3}, 2);
    for (int i = 0; i < pause; ++i) {
      SetAll(*both, RandomValues(*both));
      GradientsOf(*both, batch);
    }
    batch.shard = 1;
    SetAll(*alone, RandomValues(*alone));
    SetAll(*both, RandomValues(*both));
    EXPECT_EQ(GradientsOf(*both, batch), GradientsOf(*alone, batch));
  }
}

TEST_P(LocalStepsModelTest, SeveralReplicasBeginWithOneUpload) {
  const std::unique_ptr<Model> model =
      MakeLocal(JobWith("sgd { learning_rate: .1 }", 3, 5));
  const Batch batch = RandomBatch(15, {3}, 2);
  SetAll(*model, RandomValues(*model));
  const Values first = GradientsOf(*model, batch);
  EXPECT_EQ(GradientsOf(*model, batch), first);
  EXPECT_EQ(GradientsOf(*model, batch), first);
}

TEST_P(LocalStepsModelTest, OneStepOfPlainDescentIsTheGradient) {
  const std::unique_ptr<Model> plain = Make(kLayers);
  const std::unique_ptr<Model> model =
      MakeLocal(JobWith("sgd { learning_rate: 1 }", 1, 20));
  const Batch batch = RandomBatch(20, {3}, 2);
  SetAll(*plain, RandomValues(*plain));
  SetAll(*model, RandomValues(*model));
  const Values want = GradientsOf(*plain, batch);
  const Values got = GradientsOf(*model, batch);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_THAT(got[i], Pointwise(FloatNear(2e-6), want[i])) << i;
  }
}

TEST_P(LocalStepsModelTest, AddsUpTheLossesOfItsSteps) {
  const std::unique_ptr<Model> model =
      MakeLocal(JobWith("sgd { learning_rate: 0 }", 4, 5));
  const std::unique_ptr<Model> plain = Make(kLayers);
  SetAll(*model, RandomValues(*model));
  SetAll(*plain, RandomValues(*plain));
  const Batch batch = RandomBatch(20, {3}, 2);
  ASSERT_OK_AND_ASSIGN(const BatchResult local,
                       Train(*model, batch, IgnoreVariable));
  double want = 0;
  for (int64_t first = 0; first < 20; first += 5) {
    Batch part;
    CopyPart(batch, first, 5, part);
    ASSERT_OK_AND_ASSIGN(const BatchResult of_part,
                         Train(*plain, part, IgnoreVariable));
    want += of_part.loss_sum;
  }
  EXPECT_EQ(local.examples, 20);
  EXPECT_NEAR(local.loss_sum, want, 1e-5);
}

TEST_P(LocalStepsModelTest, AScheduleGoesByTheNumberOfTheBatch) {
  const std::unique_ptr<Model> model =
      MakeLocal(JobWith("sgd { learning_rate: 1 } learning_rate_schedule {"
                        "piecewise_constant_decay { boundary: 7 value: 0 } }",
                        /*steps=*/2, /*batch=*/10));
  // Local steps of batch n are updates 2 n and 2 n + 1; the rate ends behind 7.
  const auto moves = [&](int64_t number, int64_t size) {
    Batch batch = RandomBatch(size, {3}, 2);
    batch.number = number;
    SetAll(*model, RandomValues(*model));
    const Values differences = GradientsOf(*model, batch);
    return differences.back() != std::vector<float>(differences.back().size());
  };
  EXPECT_TRUE(moves(3, 20));
  EXPECT_FALSE(moves(4, 20));
  EXPECT_FALSE(moves(100, 10));
  EXPECT_TRUE(moves(0, 10));
}

TEST_P(LocalStepsModelTest, MovingMeansAreAddedByTheirShare) {
  const job::Job job = JobWith(kAdam, 2, 8);
  const std::unique_ptr<Model> whole = MakeLocal(job);
  const std::unique_ptr<Model> half = MakeLocal(job, {.statistics_share = .5f});
  const Batch batch = RandomBatch(16, {3}, 2);
  SetAll(*whole, RandomValues(*whole));
  SetAll(*half, RandomValues(*half));
  const Values of_whole = GradientsOf(*whole, batch);
  const Values of_half = GradientsOf(*half, batch);
  int means = 0;
  for (size_t i = 0; i < of_whole.size(); ++i) {
    const bool is_mean = !whole->variables()[i].trained;
    means += is_mean;
    std::vector<float> want = of_whole[i];
    for (float& difference : want) difference *= is_mean ? .5f : 1;
    EXPECT_EQ(of_half[i], want) << whole->variables()[i].name;
  }
  EXPECT_EQ(means, 2);
}

TEST_P(LocalStepsModelTest, GradientsStayWhileTheNextBatchComputes) {
  const std::unique_ptr<Model> model = MakeLocal(JobWith(kAdam, 2, 8));
  std::vector<absl::Span<const float>> first;
  Values copies;
  SetAll(*model, RandomValues(*model));
  ASSERT_OK(Train(*model, RandomBatch(16, {3}, 2),
                  [&](size_t, absl::Span<const float> gradient) {
                    first.push_back(gradient);
                    copies.emplace_back(gradient.begin(), gradient.end());
                  }));
  SetAll(*model, RandomValues(*model));
  ASSERT_OK(Train(*model, RandomBatch(16, {3}, 2), IgnoreVariable));
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], copies[i]);
}

TEST_P(LocalStepsModelTest, MayEndBetweenTwoSteps) {
  int steps = 0;
  const std::unique_ptr<Model> model = MakeLocal(
      JobWith(kAdam, 4, 5), {.cancelled = [&steps] { return ++steps > 2; }});
  SetAll(*model, RandomValues(*model));
  int gradients = 0;
  EXPECT_THAT(Train(*model, RandomBatch(20, {3}, 2),
                    [&](size_t, absl::Span<const float>) { ++gradients; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(gradients, 0);
  EXPECT_EQ(steps, 3);
}

TEST_P(LocalStepsModelTest, EvaluatesWholeBatches) {
  const std::unique_ptr<Model> model = MakeLocal(JobWith(kAdam, 2, 8));
  const std::unique_ptr<Model> plain = Make(kLayers);
  SetAll(*model, RandomValues(*model));
  SetAll(*plain, RandomValues(*plain));
  const Batch batch = RandomBatch(50, {3}, 2);
  ASSERT_OK_AND_ASSIGN(const Evaluated got, Evaluate(*model, batch));
  ASSERT_OK_AND_ASSIGN(const Evaluated want, Evaluate(*plain, batch));
  EXPECT_EQ(got.outputs, want.outputs);
  EXPECT_EQ(got.examples, 50);
}

TEST_P(LocalStepsModelTest, ABadLabelIsNamed) {
  const std::unique_ptr<Model> model = MakeLocal(JobWith(kAdam, 2, 8));
  Batch batch = RandomBatch(16, {3}, 2);
  batch.labels[12] = 7;
  SetAll(*model, RandomValues(*model));
  EXPECT_THAT(Train(*model, batch, IgnoreVariable),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("local step 1")));
}

TEST_P(LocalStepsModelTest, OnlyAStreamedExchangeHasFragments) {
  EXPECT_THAT(MakeLocal(JobWith(kAdam, 6, 5))->fragments(),
              ::testing::IsEmpty());
  EXPECT_THAT(MakeLocal(StreamedJob(kAdam, 1, 2))->fragments(),
              ::testing::SizeIs(1));
  const auto fragments = MakeLocal(StreamedJob(kAdam, 3, 0))->fragments();
  ASSERT_EQ(fragments.size(), 3);
  EXPECT_EQ(fragments[0].size() + fragments[1].size() + fragments[2].size(),
            MakeLocal(StreamedJob(kAdam, 1, 0))->variables().size());
}

// The second batch ends within its fourth step.
TEST_P(LocalStepsModelTest, AFragmentGoesOnFromNewValuesWithTheStepsSince) {
  for (const int overlap : {0, 1, 2}) {
    SCOPED_TRACE(overlap);
    const job::Job job = StreamedJob(kAdam, /*fragments=*/2, overlap);
    const std::unique_ptr<Model> model = MakeLocal(job);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<HostVariables> local,
        HostVariables::Create(model->variables(), JobOfLocalSteps(job)));
    ASSERT_OK(local->Initialize(0));
    Values common = RandomValues(*model);
    SetAll(*model, common);
    for (size_t i = 0; i < common.size(); ++i) {
      ASSERT_OK(local->Write(i, kValueArray, common[i]));
    }
    for (const int64_t size : {30, 18, 30}) {
      const Batch batch = RandomBatch(size, {3}, 2);
      for (const int pass : {0, 1}) {
        const std::vector<size_t> fragment = model->fragments()[pass];
        const Values got = DifferencesOf(*model, batch, pass);
        const int steps = static_cast<int>(size + 4) / 5;
        const int begin = steps * pass / 2, end = steps * (pass + 1) / 2;
        const int at = std::max(begin, end - overlap);
        StepsOf(batch, begin, at, *local);
        Values given(common.size()), want(common.size());
        for (const size_t i : fragment) {
          given[i] = ValueOf(*local, i);
          want[i] = Minus(common[i], given[i]);
        }
        EXPECT_EQ(got, want) << size << " " << pass;
        StepsOf(batch, at, end, *local);
        for (const size_t i : fragment) {
          for (float& element : common[i]) element = element / 2 + .1f;
          Set(*model, i, common[i]);
          const std::vector<float> since = Minus(ValueOf(*local, i), given[i]);
          std::vector<float> moved = common[i];
          for (size_t j = 0; j < moved.size(); ++j) moved[j] += since[j];
          ASSERT_OK(local->Write(i, kValueArray, moved));
        }
      }
    }
  }
}

// Only the steps of batch 0 change anything.
TEST_P(LocalStepsModelTest, AShardThatGivesNoDifferenceKeepsItsChanges) {
  const auto unsent = [&](bool misses_an_exchange) {
    const std::unique_ptr<Model> model = MakeLocal(
        StreamedJob("sgd { learning_rate: .1 } learning_rate_schedule {"
                    "piecewise_constant_decay { boundary: 5 value: 0 } }",
                    /*fragments=*/2, /*overlap=*/0));
    const size_t variable = model->fragments()[0][0];
    const Values common = RandomValues(*model);
    SetAll(*model, common);
    Batch batch = RandomBatch(30, {3}, 2);
    batch.shard = 1;
    DifferencesOf(*model, batch, 0);
    Set(*model, variable, common[variable]);
    DifferencesOf(*model, batch, 1);
    batch.number = 1;
    if (misses_an_exchange) {
      batch.shard = 0;
      DifferencesOf(*model, batch, 0);
      std::vector<float> next = common[variable];
      for (float& element : next) element += 2;
      Set(*model, variable, next);
      batch.shard = 1;
    }
    return DifferencesOf(*model, batch, 0)[variable];
  };
  const std::vector<float> want = unsent(false);
  EXPECT_NE(want, std::vector<float>(want.size()));
  EXPECT_THAT(unsent(true), Pointwise(FloatNear(1e-6), want));
}

TEST_P(LocalStepsModelTest, TheSameValuesAgainChangeNothing) {
  const std::unique_ptr<Model> model = MakeLocal(StreamedJob(kAdam, 2, 1));
  const std::unique_ptr<Model> again = MakeLocal(StreamedJob(kAdam, 2, 1));
  const Values common = RandomValues(*model);
  for (Model* const either : {model.get(), again.get()}) {
    SetAll(*either, common);
  }
  const Batch batch = RandomBatch(30, {3}, 2);
  for (const int pass : {0, 1, 0, 1}) {
    EXPECT_EQ(DifferencesOf(*again, batch, pass),
              DifferencesOf(*model, batch, pass));
    const std::vector<size_t> fragment = model->fragments()[pass];
    for (const size_t i : fragment) {
      Set(*model, i, common[i]);
      // An evaluation has other values between.
      Set(*again, i, std::vector<float>(common[i].size(), 7));
    }
    SetAll(*again, common);
  }
}

TEST_P(LocalStepsModelTest, ValuesThatComeAreNotUsedBeforeTheyAreThere) {
  const std::unique_ptr<Model> model = MakeLocal(StreamedJob(kAdam, 2, 1));
  const std::unique_ptr<Model> other = MakeLocal(StreamedJob(kAdam, 2, 1));
  SetAll(*model, RandomValues(*model));
  SetAll(*other, RandomValues(*other));
  const Batch batch = RandomBatch(30, {3}, 2);
  for (const int pass : {0, 1}) {
    for (size_t i = 0; i < model->variables().size(); ++i) {
      for (float& element : model->HostValue(i)) element = 99;
    }
    EXPECT_EQ(DifferencesOf(*model, batch, pass),
              DifferencesOf(*other, batch, pass));
  }
}

TEST_P(LocalStepsModelTest, AnExchangeThatWasBegunIsCompletedWithoutSteps) {
  bool is_cancelled = false;
  const std::unique_ptr<Model> model =
      MakeLocal(StreamedJob("sgd { learning_rate: .1 }", 2, 0),
                {.cancelled = [&] { return is_cancelled; }});
  const Values common = RandomValues(*model);
  SetAll(*model, common);
  const Batch batch = RandomBatch(30, {3}, 2);
  DifferencesOf(*model, batch, 0);
  const auto fragments = model->fragments();
  for (const size_t i : fragments[0]) Set(*model, i, common[i]);
  is_cancelled = true;
  const Values given = DifferencesOf(*model, batch, 1);
  for (const size_t i : fragments[1]) EXPECT_FALSE(given[i].empty());
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  ASSERT_OK(model->Stage(batch, *staged));
  EXPECT_THAT(model->Gradients(
                  *staged, 1, {.variable = IgnoreVariable, .rows = IgnoreRows}),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(LocalStepsModelTest, MoreFragmentsThanVariablesAreRefused) {
  const job::Job job = StreamedJob(kAdam, 100, 0);
  EXPECT_THAT(TakeLocalSteps(Make(kLayers), job).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("local_steps.fragments: 100")));
}

INSTANTIATE_TEST_SUITE_P(Devices, LocalStepsModelTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
