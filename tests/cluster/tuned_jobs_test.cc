// Jobs with what training is tuned with: frozen layers and tables, rates of
// their own, class weights, micro-batches, moving averages, a warm start. They
// mean the same under every strategy.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "tests/cluster/ratings.h"
#include "tests/cluster/strategy_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kWidth = 8;  // of RatingsJob()'s table "deep"

class TunedJobsTest : public StrategyRunsTest {
 protected:
  // The variables of the newest checkpoint as they are evaluated.
  static std::map<std::string, std::vector<float>> EvaluatedBy(
      const std::string& run) {
    const auto checkpoint = Newest(run);
    std::map<std::string, std::vector<float>> values =
        ReadVariables(*checkpoint);
    for (auto& [name, value] : values) {
      EXPECT_OK(ReadEvaluated(*checkpoint, name, absl::MakeSpan(value)));
    }
    return values;
  }
  // The loss of the only evaluation of a worker without a cluster.
  static double LossOf(const std::string& run) {
    std::ifstream lines(Directory(run) / "evaluations.jsonl");
    return nlohmann::json::parse(lines)["loss"].get<double>();
  }
  static void ExpectNear(const Trained& got, const Trained& want,
                         float tolerance) {
    const auto compare = [tolerance](const std::vector<float>& a,
                                     const std::vector<float>& b) {
      EXPECT_THAT(a, testing::Pointwise(testing::FloatNear(tolerance), b));
    };
    for (const auto& [name, values] : want.variables) {
      SCOPED_TRACE(name);
      compare(got.variables.at(name), values);
    }
    for (const auto& [name, rows] : want.tables) {
      SCOPED_TRACE(name);
      ASSERT_EQ(got.tables.at(name).size(), rows.size());
      for (const auto& [id, row] : rows) {
        compare(got.tables.at(name).at(id), row);
      }
    }
  }
};

// A job of numbers, tables and SGD alone.
job::Job PlainRatingsJob(int64_t steps, double learning_rate) {
  job::Job job = RatingsJob(steps);
  job.mutable_optimizer()->clear_kind();
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(learning_rate);
  job.mutable_model()->mutable_sparse_table(0)->clear_optimizer();
  FillDefaults(job);
  return job;
}

// What is frozen lies on the ps, too, and takes part in no step.
TEST_F(TunedJobsTest, FrozenLayersAndRatesHaveTheBitsOfASynchronousCluster) {
  job::Job job = ImageJob();
  job.mutable_model()->mutable_layer(0)->set_trainable(false);
  job.mutable_model()->mutable_layer(1)->set_trainable(false);
  job.mutable_model()->mutable_layer(5)->set_learning_rate_multiplier(.25);
  TrainInCluster(job, 2, QuadrantsDirectory(), "cluster");
  const Trained want = TrainedBy("cluster");
  TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
             QuadrantsDirectory(), "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), want);
  TrainByWorkers(job, 2, QuadrantsDirectory(), "workers");
  EXPECT_EQ(TrainedBy("workers"), want);

  const Trained initial = InitialOf("cluster");
  for (const auto& [name, values] : want.variables) {
    if (name.starts_with("logits/")) {
      EXPECT_NE(values, initial.variables.at(name)) << name;
    } else {
      EXPECT_EQ(values, initial.variables.at(name)) << name;
    }
  }
  // No slots beside what stays.
  const auto checkpoint = Newest("cluster");
  for (const auto& variable : checkpoint->manifest().variable()) {
    EXPECT_EQ(variable.slot_size(), variable.name().starts_with("logits/") * 2)
        << variable.name();
  }
}

// A layer's optimizer has its schedule, its average and its rate.
TEST_F(TunedJobsTest, OptimizersOfLayersHaveTheBitsOfASynchronousCluster) {
  job::Job job = ImageJob();
  job::Layer& conv = *job.mutable_model()->mutable_layer(0);
  conv.mutable_optimizer()->mutable_ftrl()->set_learning_rate(.5);
  conv.mutable_optimizer()->mutable_ema()->set_decay(.75);
  conv.set_learning_rate_multiplier(2);
  job::Optimizer& of_normal =
      *job.mutable_model()->mutable_layer(1)->mutable_optimizer();
  of_normal.mutable_adagrad()->set_learning_rate(.25);
  of_normal.mutable_learning_rate_schedule()->mutable_warmup()->set_steps(9);
  FillDefaults(job);
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    const auto run = [replicas](const std::string& name) {
      return absl::StrCat(name, replicas);
    };
    TrainInCluster(job, replicas, QuadrantsDirectory(), run("cluster"));
    const Trained want = TrainedBy(run("cluster"));
    const auto evaluated = EvaluatedBy(run("cluster"));
    EXPECT_NE(evaluated.at("conv/kernel"), want.variables.at("conv/kernel"));
    EXPECT_EQ(evaluated.at("logits/kernel"),
              want.variables.at("logits/kernel"));
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
               QuadrantsDirectory(), run("mirrored"));
    EXPECT_EQ(TrainedBy(run("mirrored")), want);
    EXPECT_EQ(EvaluatedBy(run("mirrored")), evaluated);
    TrainByWorkers(job, replicas, QuadrantsDirectory(), run("workers"));
    EXPECT_EQ(TrainedBy(run("workers")), want);
  }
  TrainAlone(job, "default {}", QuadrantsDirectory(), "default");
  EXPECT_EQ(TrainedBy("default"), TrainedBy("cluster1"));
  std::map<std::string, std::vector<std::string>> slots;
  const auto checkpoint = Newest("cluster1");
  for (const auto& variable : checkpoint->manifest().variable()) {
    slots[variable.name()] = {variable.slot().begin(), variable.slot().end()};
  }
  EXPECT_THAT(slots["conv/kernel"],
              testing::ElementsAre("accumulator", "linear", "average"));
  EXPECT_THAT(slots["normal/gamma"], testing::ElementsAre("accumulator"));
  EXPECT_THAT(slots["normal/moving_mean"], testing::IsEmpty());
  EXPECT_THAT(slots["logits/kernel"], testing::ElementsAre("m", "v"));
  // None of it is without effect.
  job.mutable_model()->mutable_layer(1)->clear_optimizer();
  TrainAlone(job, "default {}", QuadrantsDirectory(), "by_adam");
  EXPECT_NE(TrainedBy("by_adam"), TrainedBy("default"));
}

TEST_F(TunedJobsTest, FrozenTablesAndRatesHaveTheBitsOfASynchronousCluster) {
  job::Job job = RatingsJob(60);
  job::SparseTable& deep = *job.mutable_model()->mutable_sparse_table(1);
  job.mutable_model()->mutable_sparse_table(0)->set_learning_rate_multiplier(3);
  job.mutable_model()->mutable_layer(4)->set_learning_rate_multiplier(.5);
  for (const bool trainable : {false, true}) {
    SCOPED_TRACE(trainable);
    deep.set_trainable(trainable);
    if (trainable) deep.set_learning_rate_multiplier(.25);
    const auto run = [trainable](const std::string& name) {
      return absl::StrCat(name, trainable);
    };
    TrainInCluster(job, 2, RatingsDirectory(), run("cluster"));
    const Trained want = TrainedBy(run("cluster"));
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
               RatingsDirectory(), run("mirrored"));
    EXPECT_EQ(TrainedBy(run("mirrored")), want);
    TrainByWorkers(job, 2, RatingsDirectory(), run("workers"));
    EXPECT_EQ(TrainedBy(run("workers")), want);
    TrainByBoth(job, 2, RatingsDirectory(), run("hybrid"));
    EXPECT_EQ(TrainedBy(run("hybrid")), want);
    // A row that stays has its initial values, and no slots.
    EXPECT_EQ(want.tables.at("deep").begin()->second.size(),
              trainable ? 3 * 8 : 8);
    job::Job other = job;
    other.mutable_end()->set_steps(1);
    TrainInCluster(other, 2, RatingsDirectory(), run("first"));
    const Trained first = TrainedBy(run("first"));
    for (const auto& [id, row] : first.tables.at("deep")) {
      EXPECT_EQ(row == want.tables.at("deep").at(id), !trainable) << id;
    }
  }
}

// SGD's first step is the rate times the gradient.
TEST_F(TunedJobsTest, AFactorOfTheRateIsOneOfTheFirstStep) {
  job::Job job = ImageJob();
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(.125);
  job.mutable_end()->clear_epochs();
  job.mutable_end()->set_steps(1);
  FillDefaults(job);
  TrainAlone(job, "default {}", QuadrantsDirectory(), "one");
  job.mutable_model()->mutable_layer(0)->set_learning_rate_multiplier(4);
  TrainAlone(job, "default {}", QuadrantsDirectory(), "four");
  const Trained initial = InitialOf("one");
  const Trained one = TrainedBy("one"), four = TrainedBy("four");
  for (const auto& [name, values] : initial.variables) {
    const float factor = name.starts_with("conv/") ? 4 : 1;
    for (size_t i = 0; i < values.size(); ++i) {
      const float step = one.variables.at(name)[i] - values[i];
      EXPECT_NEAR(four.variables.at(name)[i] - values[i], factor * step, 1e-6)
          << name << " at " << i;
    }
  }
}

TEST_F(TunedJobsTest, MicroBatchesMakeTheStepsOfTheWholeBatch) {
  job::Job job = PlainRatingsJob(20, .125);
  TrainAlone(job, "default {}", RatingsDirectory(), "whole");
  for (const int micro_batch : {1, 7, 16}) {
    SCOPED_TRACE(micro_batch);
    job.mutable_train()->set_micro_batch_size(micro_batch);
    const std::string run = absl::StrCat("micro", micro_batch);
    TrainAlone(job, "default {}", RatingsDirectory(), run);
    EXPECT_EQ(Newest(run)->manifest().global_step(), 20);
    ExpectNear(TrainedBy(run), TrainedBy("whole"), 1e-5);
    EXPECT_NEAR(LossOf(run), LossOf("whole"), 1e-5);
  }
}

// Everything at once. Batches are clipped by no one: replicas average.
TEST_F(TunedJobsTest, EveryStrategyEndsWithTheBitsOfASynchronousCluster) {
  job::Job job = ImageJob();
  job.mutable_train()->set_micro_batch_size(10);
  job.mutable_optimizer()->mutable_ema()->set_decay(.75);
  job.mutable_optimizer()
      ->mutable_learning_rate_schedule()
      ->mutable_warmup()
      ->set_steps(9);
  job.mutable_model()->mutable_layer(0)->set_learning_rate_multiplier(2);
  job::ClassWeight& weight =
      *job.mutable_model()->mutable_loss()->add_class_weight();
  weight.set_class_(2);
  weight.set_weight(5);
  FillDefaults(job);
  TrainInCluster(job, 2, QuadrantsDirectory(), "cluster");
  const Trained want = TrainedBy("cluster");
  const auto averages = EvaluatedBy("cluster");
  EXPECT_NE(averages, want.variables);
  TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
             QuadrantsDirectory(), "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), want);
  EXPECT_EQ(EvaluatedBy("mirrored"), averages);
  TrainByWorkers(job, 2, QuadrantsDirectory(), "workers");
  EXPECT_EQ(TrainedBy("workers"), want);
  EXPECT_EQ(EvaluatedBy("workers"), averages);
  // None of it is without effect.
  job.mutable_optimizer()->clear_ema();
  TrainInCluster(job, 2, QuadrantsDirectory(), "without_ema");
  EXPECT_EQ(TrainedBy("without_ema"), want);
  job.mutable_model()->mutable_loss()->clear_class_weight();
  TrainInCluster(job, 2, QuadrantsDirectory(), "without_weights");
  EXPECT_NE(TrainedBy("without_weights"), want);
}

// Twice the weight is twice the gradient, to the last bit, and no matter of
// evaluations.
TEST_F(TunedJobsTest, ClassWeightsAreFactorsOfTheGradientInTrainingAlone) {
  TrainAlone(PlainRatingsJob(20, .25), "default {}", RatingsDirectory(), "one");
  job::Job job = PlainRatingsJob(20, .125);
  for (const int of : {0, 1}) {
    job::ClassWeight& weight =
        *job.mutable_model()->mutable_loss()->add_class_weight();
    weight.set_class_(of);
    weight.set_weight(2);
  }
  TrainAlone(job, "default {}", RatingsDirectory(), "two");
  EXPECT_EQ(TrainedBy("two"), TrainedBy("one"));
  EXPECT_EQ(LossOf("two"), LossOf("one"));
  job.mutable_model()->mutable_loss()->mutable_class_weight(1)->set_weight(0);
  TrainAlone(job, "default {}", RatingsDirectory(), "zero");
  EXPECT_NE(TrainedBy("zero"), TrainedBy("one"));
}

TEST_F(TunedJobsTest, AveragesAreWhatIsEvaluated) {
  job::Job job = QuadrantsJob(20);
  TrainAlone(job, "default {}", QuadrantsDirectory(), "plain");
  job.mutable_optimizer()->mutable_ema()->set_decay(.9);
  for (const std::string strategy :
       {"default {}", "mirrored { device: 'cpu:0' }"}) {
    const std::string run = strategy.substr(0, strategy.find(' '));
    SCOPED_TRACE(run);
    TrainAlone(job, strategy, QuadrantsDirectory(), run);
    // A job that begins with these values, and moves them by nothing.
    job::Job still = QuadrantsJob(1);
    still.mutable_optimizer()->clear_kind();
    still.mutable_optimizer()->mutable_sgd()->set_learning_rate(0);
    still.mutable_warm_start()->set_checkpoint(Directory(run));
    TrainAlone(still, "default {}", QuadrantsDirectory(), run + "_still");
    EXPECT_EQ(TrainedBy(run + "_still").variables, EvaluatedBy(run));
    EXPECT_NEAR(LossOf(run + "_still"), LossOf(run), 1e-6);
  }
  // Training does not go by the averages.
  EXPECT_EQ(TrainedBy("default").variables, TrainedBy("plain").variables);
  EXPECT_NE(LossOf("default"), LossOf("plain"));
}

TEST_F(TunedJobsTest, AJobBeginsWithAnothersValuesUnderEveryStrategy) {
  TrainInCluster(RatingsJob(40), 2, RatingsDirectory(), "old");
  const Trained old = TrainedBy("old");
  job::Job job = RatingsJob(10);
  job.mutable_warm_start()->set_checkpoint(Directory("old"));
  job.mutable_warm_start()->add_exclude("hidden/");
  job.mutable_warm_start()->add_exclude("wide");
  const std::string mirrored = absl::StrCat("mirrored { ", DevicesOf(2), " }");
  TrainInCluster(job, 2, RatingsDirectory(), "cluster");
  const Trained want = TrainedBy("cluster");
  const Trained fresh = InitialOf("old"), initial = InitialOf("cluster");
  for (const auto& [name, values] : initial.variables) {
    const bool is_taken = !name.starts_with("hidden/");
    EXPECT_EQ(values,
              is_taken ? old.variables.at(name) : fresh.variables.at(name))
        << name;
  }
  EXPECT_TRUE(initial.tables.at("wide").empty());
  ASSERT_EQ(initial.tables.at("deep").size(), old.tables.at("deep").size());
  for (const auto& [id, row] : old.tables.at("deep")) {
    // Slots begin anew.
    std::vector<float> begins(3 * kWidth, 0);
    std::copy_n(row.begin(), kWidth, begins.begin());
    EXPECT_EQ(initial.tables.at("deep").at(id), begins) << id;
  }
  EXPECT_EQ(Newest("cluster")->manifest().global_step(), 10);

  TrainAlone(job, mirrored, RatingsDirectory(), "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), want);
  TrainByWorkers(job, 2, RatingsDirectory(), "workers");
  EXPECT_EQ(TrainedBy("workers"), want);
  TrainByBoth(job, 2, RatingsDirectory(), "hybrid");
  EXPECT_EQ(TrainedBy("hybrid"), want);

  // A job that resumes does not look for it.
  job.mutable_warm_start()->set_checkpoint("/nowhere");
  job.mutable_end()->set_steps(20);
  TrainAlone(job, mirrored, RatingsDirectory(), "mirrored");
  EXPECT_EQ(Newest("mirrored")->manifest().global_step(), 20);
}

TEST_F(TunedJobsTest, AWarmStartThatCannotBeEndsBeforeTraining) {
  TrainAlone(QuadrantsJob(1), "default {}", QuadrantsDirectory(), "old");
  const auto try_warm = [](job::Job job, const std::string& path) {
    job.mutable_warm_start()->set_checkpoint(path);
    return TryAlone(job, "default {}", QuadrantsDirectory(), "new");
  };
  job::Job other = QuadrantsJob(1);
  other.mutable_model()->mutable_layer(1)->set_name("hiden");
  other.mutable_model()->mutable_layer(2)->mutable_dense()->set_units(5);
  EXPECT_THAT(
      try_warm(other, Directory("old")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("warm_start: checkpoint "),
                     HasSubstr("has no variable \"hiden/kernel\" (it has "
                               "\"hidden/kernel\""),
                     HasSubstr("\"logits/bias\" is [4] there, [5] in the "
                               "job"))));
  EXPECT_THAT(try_warm(QuadrantsJob(1), "/nowhere/at/all"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/nowhere/at/all: has no checkpoint")));
  // Nothing of it is in the way of the next attempt.
  EXPECT_OK(try_warm(QuadrantsJob(1), Directory("old")));
}

// The kernel of the last layer has several blocks of what is summed at once.
job::Job LambJob() {
  job::Job job = ImageJob();
  job.mutable_optimizer()->clear_kind();
  job::Lamb& lamb = *job.mutable_optimizer()->mutable_lamb();
  lamb.set_learning_rate(.01);
  lamb.set_weight_decay(.1);
  lamb.add_exclude_from_weight_decay("/bias$");
  lamb.add_exclude_from_weight_decay("^normal/");
  job.mutable_model()->mutable_layer(0)->mutable_conv2d()->set_filters(96);
  FillDefaults(job);
  return job;
}

TEST_F(TunedJobsTest, LambHasTheSameBitsWhereverWholeVariablesAre) {
  const job::Job job = LambJob();
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const auto run = [replicas](const std::string& name) {
      return absl::StrCat(name, replicas);
    };
    const std::string devices = DevicesOf(replicas);
    TrainAlone(job, absl::StrCat("mirrored { ", devices, " }"),
               QuadrantsDirectory(), run("mirrored"));
    const Trained want = TrainedBy(run("mirrored"));
    TrainAlone(job, absl::StrCat("central_storage { ", devices, " }"),
               QuadrantsDirectory(), run("central"));
    EXPECT_EQ(TrainedBy(run("central")), want);
    TrainByWorkers(job, replicas, QuadrantsDirectory(), run("workers"));
    EXPECT_EQ(TrainedBy(run("workers")), want);
  }
  // Exclusions have an effect.
  job::Job all = job;
  all.mutable_optimizer()->mutable_lamb()->clear_exclude_from_weight_decay();
  all.mutable_optimizer()
      ->mutable_lamb()
      ->clear_exclude_from_layer_adaptation();
  TrainAlone(all, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
             QuadrantsDirectory(), "all");
  EXPECT_NE(TrainedBy("all"), TrainedBy("mirrored2"));
}

TEST_F(TunedJobsTest, ALambJobGoesOnUnderAnotherStrategy) {
  job::Job half = LambJob();
  half.mutable_end()->clear_epochs();
  job::Job whole = half;
  half.mutable_end()->set_steps(5);
  whole.mutable_end()->set_steps(11);
  const std::string mirrored = absl::StrCat("mirrored { ", DevicesOf(2), " }");
  TrainAlone(whole, mirrored, QuadrantsDirectory(), "whole");
  TrainAlone(half, mirrored, QuadrantsDirectory(), "first");
  TrainByWorkers(whole, 2, QuadrantsDirectory(), "first");
  EXPECT_EQ(TrainedBy("first"), TrainedBy("whole"));
  TrainByWorkers(half, 2, QuadrantsDirectory(), "second");
  TrainAlone(whole, mirrored, QuadrantsDirectory(), "second");
  EXPECT_EQ(TrainedBy("second"), TrainedBy("whole"));
}

// Examples come in file order and nothing is dropped: a plain loop draws other
// numbers.
TEST_F(TunedJobsTest, LambOnOneReplicaIsWhatAPlainLoopIs) {
  job::Job job = LambJob();
  job.mutable_train()->set_shuffle_buffer(0);
  job.mutable_model()->mutable_layer(4)->mutable_dropout()->set_rate(0);
  TrainAlone(job, "default {}", QuadrantsDirectory(), "default");
  TrainAlone(job, "one_device { device: '/cpu:0' }", QuadrantsDirectory(),
             "one");
  EXPECT_EQ(TrainedBy("one"), TrainedBy("default"));
  TrainAlone(job, "mirrored { device: 'cpu:0' }", QuadrantsDirectory(),
             "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), TrainedBy("default"));
}

// Tables are on ps under hybrid, and have optimizers of their own.
TEST_F(TunedJobsTest, LambForVariablesBesideTablesHasTheSameBits) {
  job::Job job = RatingsJob(60);
  job.mutable_optimizer()->clear_kind();
  job.mutable_optimizer()->mutable_lamb()->set_learning_rate(.01);
  job.mutable_model()
      ->mutable_sparse_table(1)
      ->mutable_optimizer()
      ->mutable_lazy_adam();
  FillDefaults(job);
  TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
             RatingsDirectory(), "mirrored");
  const Trained want = TrainedBy("mirrored");
  TrainByWorkers(job, 2, RatingsDirectory(), "workers");
  EXPECT_EQ(TrainedBy("workers"), want);
  TrainByBoth(job, 2, RatingsDirectory(), "hybrid");
  EXPECT_EQ(TrainedBy("hybrid"), want);
}

}  // namespace
}  // namespace parasol
