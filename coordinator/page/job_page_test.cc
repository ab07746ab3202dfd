#include "coordinator/page/job_page.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "coordinator/steps/epoch_losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

class JobPageTest : public testing::Test {
 protected:
  JobPageTest() {
    status_.set_phase(wire::TRAINING);
    status_.set_end_step(1000);
  }

  void Train(int64_t step, double loss) {
    status_.set_global_step(step);
    status_.set_loss(loss);
    page_.Show(status_);
    clock_.Advance(absl::Seconds(1));
  }
  nlohmann::json State() const {
    return nlohmann::json::parse(page_.At("/status.json").body);
  }

  SimulatedClock clock_;
  JobPage page_{clock_};
  wire::JobStatus status_;
};

TEST_F(JobPageTest, BeforeTheChiefKnowsItsRunThereIsAPageWithoutAJob) {
  EXPECT_TRUE(State()["job"].is_null());
  EXPECT_THAT(page_.At("/").body, HasSubstr("<!DOCTYPE html>"));
  EXPECT_EQ(page_.At("/nothing").status, 404);
}

TEST_F(JobPageTest, AFullListOfEpochsBeginsBehindItsOldestEnd) {
  const auto add_end = [this](int64_t epoch) {
    wire::EpochEnd& end = *status_.add_epoch_end();
    end.set_step(10 * epoch);
    // Epoch n has the mean loss n.
    end.set_loss_sum(100. * epoch * (epoch + 1) / 2);
    end.set_loss_examples(100 * epoch);
    end.set_is_complete(true);
  };
  // What came before epoch 5 is forgotten.
  constexpr int64_t kFirst = 5;
  constexpr int64_t kEnds = EpochLosses::kMaxEnds;
  for (int64_t i = 0; i + 1 < kEnds; ++i) add_end(1 + i);
  page_.Show(status_);
  nlohmann::json epochs = State()["epochs"];
  ASSERT_EQ(epochs.size(), kEnds - 1);
  EXPECT_EQ(epochs[0], nlohmann::json({{"step", 10}, {"loss", 1.}}));
  status_.clear_epoch_end();
  for (int64_t i = 0; i < kEnds; ++i) add_end(kFirst + i);
  page_.Show(status_);
  epochs = State()["epochs"];
  ASSERT_EQ(epochs.size(), kEnds - 1);
  EXPECT_EQ(epochs[0], nlohmann::json({{"step", 60}, {"loss", 6.}}));
}

TEST_F(JobPageTest, TheAgeSaysThatTheChiefHangs) {
  Train(10, .5);
  clock_.Advance(absl::Seconds(41));
  EXPECT_EQ(State()["age_seconds"], 42);
  EXPECT_EQ(State()["job"]["global_step"], 10);
}

TEST_F(JobPageTest, CurvesAndTheRateFollowTheTraining) {
  for (int i = 0; i < 5; ++i) Train(20 * i, 1. / (i + 1));
  const nlohmann::json state = State();
  EXPECT_EQ(state["curve"]["step"], nlohmann::json({0, 20, 40, 60, 80}));
  EXPECT_EQ(state["curve"]["loss"][1], .5);
  EXPECT_EQ(state["steps_per_second"], 20);
}

TEST_F(JobPageTest, ACurveOfALongTrainingIsBoundedAndReachesFromEndToEnd) {
  for (int i = 0; i < 5000; ++i) Train(i, 1);
  const nlohmann::json steps = State()["curve"]["step"];
  EXPECT_THAT(steps.size(), Le(JobPage::kMaxPoints));
  EXPECT_THAT(steps.size(), Gt(JobPage::kMaxPoints / 2));
  EXPECT_EQ(steps.front(), 0);
  EXPECT_THAT(steps.back().get<int>(), Gt(4980));
}

TEST_F(JobPageTest, WhatIsNoNumberIsNull) {
  Train(1, std::nan(""));
  page_.Evaluated(
      {{.global_step = 1, .metrics = {{"auc", INFINITY}}, .loss = -INFINITY}});
  const nlohmann::json state = State();
  EXPECT_TRUE(state["curve"]["loss"][0].is_null());
  EXPECT_TRUE(state["evaluations"][0]["loss"].is_null());
  EXPECT_TRUE(state["evaluations"][0]["metrics"]["auc"].is_null());
}

TEST_F(JobPageTest, TextsOfStrangersStayTexts) {
  wire::TaskStatus& task = *status_.add_task();
  task.mutable_task()->set_role("worker");
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"\xff";
  task.set_address(hostile);
  Train(1, 1);
  page_.Note(absl::StrCat("a line\x1b[2J of ", hostile), true);
  const nlohmann::json state = State();
  EXPECT_THAT(state["job"]["tasks"][0]["address"].get<std::string>(),
              HasSubstr("<img src=x"));
  EXPECT_THAT(state["notes"][0]["text"].get<std::string>(),
              Not(HasSubstr("\x1b")));
  // The script never parses a text as HTML, and the page takes no other
  // script.
  const std::string script = page_.At("/page.js").body;
  for (const char* parses : {"innerHTML", "outerHTML", "insertAdjacentHTML",
                             "document.write", "eval(", "DOMParser"}) {
    EXPECT_THAT(script, Not(HasSubstr(parses)));
  }
  EXPECT_THAT(page_.At("/").body, HasSubstr("script-src 'self'"));
}

TEST_F(JobPageTest, TheNewestLinesAreKept) {
  for (int i = 0; i < 1000; ++i) page_.Note(absl::StrCat("line ", i), false);
  const nlohmann::json notes = State()["notes"];
  EXPECT_EQ(notes.size(), JobPage::kMaxNotes);
  EXPECT_EQ(notes.back()["text"], "line 999");
}

}  // namespace
}  // namespace parasol
