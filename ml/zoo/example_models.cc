#include "ml/zoo/example_models.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ml/builder/columns.h"
#include "ml/zoo/deep_and_cross.h"
#include "ml/zoo/deepfm.h"
#include "ml/zoo/din.h"
#include "ml/zoo/dlrm.h"
#include "ml/zoo/esmm.h"
#include "ml/zoo/lenet.h"
#include "ml/zoo/logistic_regression.h"
#include "ml/zoo/matrix_factorization.h"
#include "ml/zoo/mlp.h"
#include "ml/zoo/mmoe.h"
#include "ml/zoo/resnet_cifar.h"
#include "ml/zoo/sasrec.h"
#include "ml/zoo/softmax_regression.h"
#include "ml/zoo/wide_and_deep.h"

namespace parasol::zoo {
namespace {

// Adult's columns as the examples name them: the files have no header.
constexpr const char* kAdultCategories[] = {
    "workclass", "education", "marital_status", "occupation", "relationship",
    "race",      "sex",       "native_country"};

// Means and deviations of adult.data.
std::vector<job::NumericColumn> AdultNumbers() {
  return {
      Numeric("age", {.mean = 38.6, .stddev = 13.6}),
      Numeric("education_num", {.mean = 10.1, .stddev = 2.57}),
      Numeric("capital_gain", {.log1p = true, .mean = .735, .stddev = 2.45}),
      Numeric("capital_loss", {.log1p = true, .mean = .351, .stddev = 1.58}),
      Numeric("hours_per_week", {.mean = 40.4, .stddev = 12.3})};
}

job::Model AdultWideAndDeep() {
  const std::vector<double> ages = {18, 25, 30, 35, 40, 45, 50, 55, 60, 65};
  const std::vector<double> hours = {20, 30, 35, 40, 45, 50, 60};
  const std::vector<double> gains = {1, 3000, 5000, 7000, 10000, 20000};
  const std::vector<double> losses = {1, 1500, 1800, 2000, 2300};
  WideAndDeepOptions options;
  for (const char* const name : kAdultCategories) {
    options.wide.push_back(Hashed(name));
    options.deep.push_back(Hashed(name));
  }
  for (const job::IdColumn& buckets :
       {Bucketized("age", ages), Bucketized("hours_per_week", hours),
        Bucketized("capital_gain", gains),
        Bucketized("capital_loss", losses)}) {
    options.wide.push_back(buckets);
    options.deep.push_back(buckets);
  }
  options.wide.push_back(Crossed({"education", "occupation"}));
  options.wide.push_back(Crossed({"relationship", "education"}));
  options.wide.push_back(Crossed({"native_country", "occupation"}));
  options.numeric = AdultNumbers();
  return WideAndDeep(options);
}

job::Model AdultDeepAndCross() {
  DeepAndCrossOptions options;
  for (const char* const name : kAdultCategories) {
    options.fields.push_back(Hashed(name));
  }
  options.numeric = AdultNumbers();
  options.embedding_width = 8;
  options.hidden = {100, 50};
  return DeepAndCross(options);
}

// Two tasks that are far from the same, without the columns that say one of
// them: "relationship" has husbands and wives.
job::Model AdultMmoe() {
  MmoeOptions options;
  for (const char* const name : {"workclass", "education", "occupation", "race",
                                 "sex", "native_country"}) {
    options.fields.push_back(Hashed(name));
  }
  options.numeric = AdultNumbers();
  Task income = {.name = "income"};
  income.label.set_column("income");
  income.label.add_positive(">50K");
  income.label.add_positive(">50K.");
  Task single = {.name = "never_married"};
  single.label.set_column("marital_status");
  single.label.add_positive("Never-married");
  options.tasks = {income, single};
  return Mmoe(options);
}

job::Model AdsEsmm() {
  EsmmOptions options;
  for (const char* const name : {"user", "item", "category"}) {
    options.fields.push_back(Hashed(name));
  }
  options.hidden = {64, 32};
  return Esmm(options);
}

job::Model CriteoDeepFm() {
  // Counts with a long tail: the wider the buckets, the further out.
  const std::vector<double> counts = {0,  1,   2,   4,    8,    16,   32,
                                      64, 128, 256, 1024, 4096, 16384};
  DeepFmOptions options;
  for (int i = 1; i <= 13; ++i) {
    options.fields.push_back(Bucketized(absl::StrCat("I", i), counts));
  }
  for (int i = 1; i <= 26; ++i) {
    options.fields.push_back(Hashed(absl::StrCat("C", i), 1'000'000));
  }
  return DeepFm(options);
}

job::Model CriteoDlrm() {
  DlrmOptions options;
  for (int i = 1; i <= 13; ++i) {
    options.numeric.push_back(
        Numeric(absl::StrCat("I", i), {.default_value = 0, .log1p = true}));
  }
  for (int i = 1; i <= 26; ++i) {
    options.fields.push_back(Hashed(absl::StrCat("C", i), 1'000'000));
  }
  return Dlrm(options);
}

constexpr int64_t kDrawnItems = 80;

job::Model PurchasesDin() {
  return Din({.candidate = IdentityOf("item", kDrawnItems),
              .history = IdentityOf("history", kDrawnItems)});
}

job::Model PurchasesSasRec() {
  return SasRec({.item = IdentityOf("item", kDrawnItems),
                 .history = IdentityOf("history", kDrawnItems),
                 .taken = "bought",
                 .group = "event"});
}

job::Optimizer Ftrl(double learning_rate, double l2) {
  job::Optimizer optimizer;
  optimizer.mutable_ftrl()->set_learning_rate(learning_rate);
  optimizer.mutable_ftrl()->set_initial_accumulator_value(.01);
  optimizer.mutable_ftrl()->set_l2_regularization_strength(l2);
  return optimizer;
}

job::Model MovieTweetingsFactorization() {
  return MatrixFactorization({.factors = 8,
                              .mean_rating = 7.3,
                              .factor_l2 = .006,
                              .bias_optimizer = Ftrl(.15, /*l2=*/.02),
                              .factor_optimizer = Ftrl(.3, /*l2=*/.003)});
}

}  // namespace

std::map<std::string, job::Model> ExampleModels() {
  return {{"mnist_softmax", SoftmaxRegression()},
          {"mnist_mlp", Mlp()},
          {"mnist_lenet", LeNet()},
          {"cifar10_resnet56", ResNetCifar()},
          {"a9a_logistic", LogisticRegression()},
          {"agaricus_logistic", LogisticRegression()},
          {"adult_dcn", AdultDeepAndCross()},
          {"adult_mmoe", AdultMmoe()},
          {"ads_esmm", AdsEsmm()},
          {"adult_wide_deep", AdultWideAndDeep()},
          {"criteo_deepfm", CriteoDeepFm()},
          {"criteo_dlrm", CriteoDlrm()},
          {"movietweetings_mf", MovieTweetingsFactorization()},
          {"purchases_din", PurchasesDin()},
          {"purchases_sasrec", PurchasesSasRec()}};
}

}  // namespace parasol::zoo
