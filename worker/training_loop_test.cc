#include "worker/training_loop.h"

#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pass_seed.h"
#include "worker/testing/fake_staged_batch.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the loop asked for, in order: "pull", "compute", "push kernel+bias",
// "acknowledged", "completed".
using Events = std::vector<std::string>;

VariableSpec Variable(std::string name, int64_t size) {
  VariableSpec spec;
  spec.name = std::move(name);
  spec.shape = {size};
  return spec;
}

// A model of two variables whose gradients are all ones, and perhaps a table.
class FakeModel : public Model {
 public:
  FakeModel(Events& events, int64_t kernel_size, int64_t bias_size)
      : events_(events),
        variables_(
            {Variable("kernel", kernel_size), Variable("bias", bias_size)}) {
    for (const VariableSpec& spec : variables_) {
      values_.emplace_back(spec.elements());
      gradients_.emplace_back(spec.elements(), 1.0f);
    }
  }

  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::Span<float> HostValue(size_t index) override {
    return absl::MakeSpan(values_[index]);
  }
  absl::Status Upload(size_t index) override {
    ++uploads;
    return absl::OkStatus();
  }
  std::vector<std::vector<size_t>> fragments() const override {
    if (!in_fragments) return {};
    return {{1}, {0}};
  }

  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<FakeStagedBatch>();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    auto& fake = static_cast<FakeStagedBatch&>(staged);
    fake.batch = &batch;
    if (!tables_.empty()) fake.StageRows(ids);
    return absl::OkStatus();
  }
  const std::vector<TableUse>& tables() const override { return tables_; }
  void AddTable() { tables_.push_back({.name = "users", .width = 1}); }
  void FreezeBias() {
    variables_[1].frozen = true;
    has_bias_gradient = false;
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    const auto& fake = static_cast<FakeStagedBatch&>(staged);
    const Batch& batch = *fake.batch;
    events_.push_back("compute");
    seeds.push_back(seed);
    const bool is_all = !in_fragments;
    if (has_bias_gradient && (is_all || staged.pass == 0)) {
      sinks.variable(1, gradients_[1]);
    }
    if (is_all || staged.pass == 1) sinks.variable(0, gradients_[0]);
    if (!tables_.empty()) sinks.rows(0, fake.ids, fake.values);
    BatchResult result;
    result.examples = batch.size;
    result.loss_sum = loss * batch.size;
    return result;
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch&) override {
    return absl::UnimplementedError("not part of the loop");
  }

  double loss = 0.5;
  bool has_bias_gradient = true;
  bool in_fragments = false;
  int uploads = 0;
  std::vector<uint64_t> ids;  // ids of each batch
  std::vector<uint64_t> seeds;

 private:
  Events& events_;
  std::vector<VariableSpec> variables_;
  std::vector<TableUse> tables_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
};

class FakeInput : public InputPipeline {
 public:
  absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions&) const override {
    return absl::UnimplementedError("not part of the loop");
  }
  int64_t total_examples() const override { return 4; }
  absl::StatusOr<std::vector<int64_t>> ShardSizes(int) const override {
    return absl::UnimplementedError("not part of the loop");
  }
  void SetNext(const std::vector<int64_t>& numbers) override {
    named.push_back(numbers);
  }
  absl::StatusOr<const Batch*> Next() override {
    if (!failure.ok()) return failure;
    EXPECT_FALSE(named.empty());
    batch_.size = empty.contains(named.back().front()) ? 0 : 4;
    return &batch_;
  }

  absl::Status failure;
  std::set<int64_t> empty;  // batches without examples
  std::vector<std::vector<int64_t>> named;

 private:
  Batch batch_;
};

class FakeParameters : public TrainingParameters {
 public:
  FakeParameters(Events& events, const Model& model)
      : events_(events), model_(model) {}

  std::unique_ptr<Pending> Pull(PullRequest request) override {
    std::string event = request.rows.empty() ? "pull" : "pull rows";
    if (request.targets.size() == 1) {
      event += " " + model_.variables()[request.targets[0].variable].name;
    }
    events_.push_back(event);
    return std::make_unique<Reply>(nullptr, absl::OkStatus(), pulls_are_late);
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    std::string event = "push";
    for (const Gradient& gradient : request.gradients) {
      event += " " + model_.variables()[gradient.variable].name;
    }
    for (const RowGradient& rows : request.rows) {
      event += " " + std::to_string(rows.ids.size()) + " rows";
    }
    events_.push_back(event);
    return std::make_unique<Reply>(&events_, push_result);
  }
  Awaited Unanswered() const override { return {}; }
  void Stop() override {}

  absl::Status push_result;
  bool pulls_are_late = false;

 private:
  class Reply : public Pending {
   public:
    Reply(Events* events, absl::Status result, bool is_late = false)
        : events_(events), result_(std::move(result)), is_late_(is_late) {}
    absl::Status Wait() override {
      if (events_ != nullptr) events_->push_back("acknowledged");
      return result_;
    }
    // What is late is there for who waits for it.
    bool WaitFor(absl::Duration limit) override {
      return !is_late_ || limit > absl::ZeroDuration();
    }
    Outcome outcome() const override { return {}; }

   private:
    Events* const events_;
    const absl::Status result_;
    const bool is_late_;
  };

  Events& events_;
  const Model& model_;
};

// Grants as many steps as it is told, then says `last`, as a chief does: when
// all of them are completed.
class FakeSteps : public StepSource {
 public:
  FakeSteps(Events& events, int steps, absl::Status last, bool can_start_now)
      : events_(events),
        left_(steps),
        last_(std::move(last)),
        can_start_now_(can_start_now) {}
  bool CanStartNow() override { return can_start_now_ && left_ > 0; }
  absl::StatusOr<std::optional<int64_t>> Start() override {
    if (left_ == 0) {
      EXPECT_EQ(started_, completed_) << "waits for itself";
      if (!last_.ok()) return last_;
      return std::nullopt;
    }
    --left_;
    return 10 + started_++;
  }
  std::vector<int64_t> Upcoming() override {
    return left_ == 0 ? std::vector<int64_t>() : std::vector{10 + started_};
  }
  void Complete() override {
    ++completed_;
    events_.push_back("completed");
  }
  void Stop() override {}

 private:
  Events& events_;
  int left_;
  absl::Status last_;
  int64_t started_ = 0;
  int64_t completed_ = 0;
  const bool can_start_now_;
};

class TrainingLoopTest : public testing::Test {
 protected:
  absl::Status Train(TrainingLoop::Options options, int steps,
                     absl::Status last = absl::OkStatus(),
                     int64_t kernel_size = 2, int64_t bias_size = 1) {
    FakeModel model(events_, kernel_size, bias_size);
    model.has_bias_gradient = has_bias_gradient_;
    if (is_bias_frozen_) model.FreezeBias();
    model.loss = loss_;
    model.in_fragments = in_fragments_;
    if (ids_of_table_.has_value()) {
      model.AddTable();
      model.ids = *ids_of_table_;
    }
    FakeParameters parameters(events_, model);
    parameters.push_result = push_result_;
    parameters.pulls_are_late = pulls_are_late_;
    FakeSteps source(events_, steps, std::move(last), can_start_now_);
    TrainingLoop loop(options, model, input_, parameters, source, clock_,
                      metrics_, reporter_);
    const absl::Status result = loop.Run();
    seeds_ = model.seeds;
    uploads_ = model.uploads;
    report_ = reporter_.Take();
    return result;
  }

  MetricsRegistry registry_;
  WorkerMetrics metrics_{registry_};
  SimulatedClock clock_;
  TrainingReporter reporter_{clock_};
  FakeInput input_;
  Events events_;
  double loss_ = 0.5;
  bool can_start_now_ = true;
  absl::Status push_result_;
  bool pulls_are_late_ = false;
  bool has_bias_gradient_ = true;
  bool is_bias_frozen_ = false;
  bool in_fragments_ = false;
  int uploads_ = 0;
  // Set: the model has a table, of which each batch has these ids.
  std::optional<std::vector<uint64_t>> ids_of_table_;
  std::vector<uint64_t> seeds_;
  TrainingReport report_;
};

TEST_F(TrainingLoopTest, ExchangesOfLocalStepsDoNotOverlap) {
  job::Job job;
  job.mutable_worker()->set_overlap(true);
  job.mutable_worker()->set_reuse_values(true);
  EXPECT_TRUE(TrainingLoop::OptionsOf(job).overlap);
  EXPECT_TRUE(TrainingLoop::OptionsOf(job).may_reuse_values);
  job.mutable_parameter_server()->mutable_local_steps()->set_steps(10);
  EXPECT_FALSE(TrainingLoop::OptionsOf(job).overlap);
  EXPECT_FALSE(TrainingLoop::OptionsOf(job).may_reuse_values);
}

TEST_F(TrainingLoopTest, AFragmentsValuesArePulledBehindItsPushAndNoOthers) {
  in_fragments_ = true;
  ASSERT_OK(Train({.overlap = false}, /*steps=*/2));
  EXPECT_THAT(events_,
              ElementsAre("pull",                                       //
                          "compute", "push bias", "pull bias",          //
                          "compute", "push kernel", "pull kernel",      //
                          "acknowledged", "acknowledged", "completed",  //
                          "compute", "push bias", "pull bias",          //
                          "compute", "push kernel", "pull kernel",      //
                          "acknowledged", "acknowledged", "completed"));
  // Both at first, then each fragment's behind its pull.
  EXPECT_EQ(uploads_, 2 + 2 * 2);
  EXPECT_EQ(report_.steps, 2);
  EXPECT_EQ(report_.examples, 16);
  EXPECT_THAT(seeds_, ElementsAre(seeds_[0], seeds_[0], seeds_[2], seeds_[2]));
}

TEST_F(TrainingLoopTest, WithOverlapTheNextValuesArePulledBehindTheGradients) {
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2));
  EXPECT_THAT(events_,
              ElementsAre("pull",                                 //
                          "compute", "push bias kernel", "pull",  //
                          "compute", "push bias kernel",          //
                          "acknowledged", "completed",            //
                          "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, EachVariableIsPulledAsSoonAsItsGradientHasLeft) {
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2, absl::OkStatus(),
                  /*kernel_size=*/2, /*bias_size=*/1 << 20));
  EXPECT_THAT(events_,
              ElementsAre("pull",                                       //
                          "compute", "push bias", "pull bias",          //
                          "push kernel", "pull kernel",                 //
                          "compute", "push bias", "push kernel",        //
                          "acknowledged", "acknowledged", "completed",  //
                          "acknowledged", "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, AVariableWithoutAGradientIsPulledLast) {
  has_bias_gradient_ = false;
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2));
  EXPECT_THAT(events_, ElementsAre("pull",                                   //
                                   "compute", "push kernel", "pull kernel",  //
                                   "pull bias",                              //
                                   "compute", "push kernel",                 //
                                   "acknowledged", "completed",              //
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, AFrozenVariableIsPulledOnceAndNeverPushed) {
  is_bias_frozen_ = true;
  ASSERT_OK(Train({.overlap = true}, /*steps=*/3));
  EXPECT_THAT(events_, ElementsAre("pull", "compute", "push kernel",
                                   "pull kernel", "compute", "push kernel",
                                   "pull kernel", "acknowledged", "completed",
                                   "compute", "push kernel", "acknowledged",
                                   "completed", "acknowledged", "completed"));
  events_.clear();
  ASSERT_OK(Train({.overlap = false}, /*steps=*/2));
  EXPECT_THAT(events_,
              ElementsAre("pull", "compute", "push kernel", "acknowledged",
                          "completed", "pull kernel", "compute", "push kernel",
                          "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, RowsArePulledWhileTheStepBeforeComputesAndPushedOnce) {
  ids_of_table_ = {7, 9};
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2));
  EXPECT_THAT(events_, ElementsAre("pull", "pull rows",  //
                                   "pull rows", "compute",
                                   "push bias kernel 2 rows", "pull",     //
                                   "compute", "push bias kernel 2 rows",  //
                                   "acknowledged", "completed",           //
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, ATableCountsAStepThatReadsNoneOfItsRows) {
  ids_of_table_.emplace();
  ASSERT_OK(Train({.overlap = false}, /*steps=*/1));
  EXPECT_THAT(events_, ElementsAre("pull", "compute", "push bias kernel 0 rows",
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, ValuesThatAreLateAreUsedByTheStepAfterTheirs) {
  pulls_are_late_ = true;
  ASSERT_OK(Train({.overlap = true, .may_reuse_values = true}, /*steps=*/4));
  EXPECT_THAT(events_, ElementsAre("pull",                                 //
                                   "compute", "push bias kernel", "pull",  //
                                   // With the first one's values.
                                   "compute", "push bias kernel",          //
                                   "acknowledged", "completed",            //
                                   "compute", "push bias kernel", "pull",  //
                                   "acknowledged", "completed",            //
                                   "compute", "push bias kernel",          //
                                   "acknowledged", "completed",            //
                                   "acknowledged", "completed"));
  EXPECT_EQ(metrics_.reused_values.value(), 2);
}

TEST_F(TrainingLoopTest, ValuesThatAreThereAreNeverPassedOver) {
  ASSERT_OK(Train({.overlap = true, .may_reuse_values = true}, /*steps=*/3));
  EXPECT_EQ(metrics_.reused_values.value(), 0);
}

TEST_F(TrainingLoopTest, EachPassHasARandomSeedOfItsOwn) {
  ASSERT_OK(Train({.seed = 3, .worker = 2, .first_pass = 10}, /*steps=*/2));
  EXPECT_THAT(seeds_, ElementsAre(PassSeed(3, 10, 2), PassSeed(3, 11, 2)));
  const std::set<uint64_t> seeds = {PassSeed(3, 10, 2), PassSeed(3, 11, 2),
                                    PassSeed(3, 10, 1), PassSeed(4, 10, 2),
                                    PassSeed(3, 2, 10)};
  EXPECT_EQ(seeds.size(), 5u);
}

TEST_F(TrainingLoopTest, AStepThatIsNotGrantedYetIsNeitherPulledNorCrowded) {
  can_start_now_ = false;
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2));
  EXPECT_THAT(events_, ElementsAre("pull", "compute", "push bias kernel",  //
                                   "acknowledged", "completed",            //
                                   "pull", "compute", "push bias kernel",  //
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, WithoutOverlapAStepSeesTheLastOnesGradient) {
  ASSERT_OK(Train({.overlap = false}, /*steps=*/2));
  EXPECT_THAT(events_, ElementsAre("pull", "compute", "push bias kernel",
                                   "acknowledged", "completed",  //
                                   "pull", "compute", "push bias kernel",
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, ALargeGradientLeavesBeforeTheEarlierLayersCompute) {
  ASSERT_OK(Train({.overlap = false}, /*steps=*/1, absl::OkStatus(),
                  /*kernel_size=*/1 << 20));
  EXPECT_THAT(events_, ElementsAre("pull", "compute", "push bias kernel",
                                   "acknowledged", "completed"));
}

TEST_F(TrainingLoopTest, StoppingWaitsForTheLastGradients) {
  EXPECT_THAT(
      Train({.overlap = true}, /*steps=*/1, absl::CancelledError("stopped")),
      StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(events_.back(), "completed");
}

TEST_F(TrainingLoopTest, AStepWhoseGradientWasRefusedIsNotCompleted) {
  push_result_ = absl::UnavailableError("ps/1 did not answer in 5m");
  EXPECT_THAT(Train({.overlap = false}, /*steps=*/1),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps/1")));
  EXPECT_THAT(events_, testing::Not(testing::Contains("completed")));
  EXPECT_EQ(metrics_.steps.value(), 0);
}

TEST_F(TrainingLoopTest,
       ALossThatIsNotFiniteEndsTheJobBeforeItsGradientCounts) {
  loss_ = std::numeric_limits<double>::infinity();
  EXPECT_THAT(
      Train({.overlap = true}, /*steps=*/3),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the loss is inf")));
  EXPECT_EQ(metrics_.steps.value(), 0);
}

TEST_F(TrainingLoopTest, ALossThatIsNotFiniteIsPassedOverWhenTheJobSaysSo) {
  loss_ = std::numeric_limits<double>::quiet_NaN();
  EXPECT_OK(
      Train({.overlap = true, .non_finite_loss = job::WorkerSettings::CONTINUE},
            /*steps=*/2));
  EXPECT_EQ(metrics_.steps.value(), 2);
}

TEST_F(TrainingLoopTest, BrokenInputEndsTheLoopWithItsOwnError) {
  input_.failure = absl::DataLossError("train.gz: truncated at byte 17");
  EXPECT_THAT(Train({.overlap = true}, /*steps=*/1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte 17")));
}

TEST_F(TrainingLoopTest, TheInputIsToldTheStepsBatchAndThoseThatFollow) {
  ASSERT_OK(Train({.overlap = true}, /*steps=*/2));
  EXPECT_THAT(input_.named, ElementsAre(ElementsAre(10, 11), ElementsAre(11)));
}

TEST_F(TrainingLoopTest, AStepWithoutExamplesIsCompletedAfterTheOneBeforeIt) {
  for (const bool overlap : {false, true}) {
    events_.clear();
    input_.empty = {11, 12, 14};
    ASSERT_OK(Train({.overlap = overlap}, /*steps=*/5));
    Events computed;
    for (const std::string& event : events_) {
      if (event == "compute" || event == "completed") computed.push_back(event);
    }
    EXPECT_THAT(computed,
                ElementsAre("compute", "completed", "completed", "completed",
                            "compute", "completed", "completed"))
        << overlap;
  }
}

TEST_F(TrainingLoopTest, TheReportCountsStepsExamplesAndLoss) {
  ASSERT_OK(Train({.overlap = true}, /*steps=*/3));
  EXPECT_EQ(report_.steps, 3);
  EXPECT_EQ(report_.examples, 12);
  EXPECT_DOUBLE_EQ(report_.loss_sum, 6.0);
}

}  // namespace
}  // namespace parasol
