#include "tool/exchange/import_match.h"

#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

// A variable with Adam's slots, and a table of width 2 with Ftrl's.
struct TestModel {
  TestModel() {
    job.mutable_optimizer()->mutable_adam();
    job::SparseTable& table = *job.mutable_model()->add_sparse_table();
    table.set_name("users");
    table.set_width(2);
    table.mutable_optimizer()->mutable_ftrl();
    contents.variables.emplace_back();
    contents.variables[0].set_name("hidden/kernel");
    contents.variables[0].add_shape(4);
    contents.variables[0].add_shape(3);
    for (const char* slot : {"m", "v"}) contents.variables[0].add_slot(slot);
    contents.tables.emplace_back();
    contents.tables[0].set_name("users");
    contents.tables[0].set_width(2);
    for (const char* slot : {"accumulator", "linear"}) {
      contents.tables[0].add_slot(slot);
    }
  }

  job::Job job;
  CheckpointContents contents;
};

constexpr ElementType kFloat = ElementType::kFloat32;

std::vector<TensorInfo> AllTensors() {
  return {{"global_step", ElementType::kInt64, {}},
          {"Adam/iter", ElementType::kInt64, {}},
          {"hidden/kernel", kFloat, {4, 3}},
          {"Adam/hidden/kernel/m", kFloat, {4, 3}},
          {"Adam/hidden/kernel/v", kFloat, {4, 3}},
          {"users/ids", ElementType::kUint64, {5}},
          {"users/rows", kFloat, {5, 2}},
          {"Ftrl/users/rows/accumulator", kFloat, {5, 2}},
          {"Ftrl/users/rows/linear", kFloat, {5, 2}}};
}

absl::StatusOr<ImportMatch> Match(const std::vector<TensorInfo>& tensors,
                                  bool allow_surplus = false) {
  const TestModel model;
  return MatchTensors(tensors, model.contents, model.job, allow_surplus);
}

TEST(ImportMatchTest, NamesOfAnExportAreFound) {
  ASSERT_OK_AND_ASSIGN(const ImportMatch match, Match(AllTensors()));
  EXPECT_THAT(match.global_step, Optional(0));
  EXPECT_THAT(match.iterations, Optional(1));
  EXPECT_EQ(match.variables[0].value, 2);
  EXPECT_THAT(match.variables[0].slots, ElementsAre(Optional(3), Optional(4)));
  EXPECT_EQ(match.tables[0].ids, 5);
  EXPECT_EQ(match.tables[0].rows, 6);
  EXPECT_THAT(match.tables[0].slots, ElementsAre(Optional(7), Optional(8)));
  EXPECT_FALSE(match.lacks_all_slots);
}

TEST(ImportMatchTest, ASlotOfRowsHasOneColumn) {
  TestModel model;
  job::SparseTable& users = *model.job.mutable_model()->mutable_sparse_table(0);
  users.mutable_optimizer()->mutable_rowwise_adagrad();
  durable::CheckpointTable& table = model.contents.tables[0];
  table.clear_slot();
  table.add_slot("row_accumulator");
  table.add_slot_width(1);
  const std::string name = "RowwiseAdagrad/users/rows/row_accumulator";
  std::vector<TensorInfo> tensors = AllTensors();
  tensors.resize(7);
  tensors.push_back({name, kFloat, {5, 1}});
  ASSERT_OK_AND_ASSIGN(const ImportMatch match,
                       MatchTensors(tensors, model.contents, model.job,
                                    /*allow_surplus=*/false));
  EXPECT_THAT(match.tables[0].slots, ElementsAre(Optional(7)));
  tensors[7].shape = {5, 2};
  EXPECT_THAT(
      MatchTensors(tensors, model.contents, model.job, /*allow_surplus=*/false),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(name + " is float32 [5, 2], the job's is float32 "
                                "[5, 1]")));
}

TEST(ImportMatchTest, NewerKerasNamesSlotsTheOtherWayRound) {
  std::vector<TensorInfo> tensors = AllTensors();
  tensors[1].name = "iteration";
  tensors[2].name = "model/hidden/kernel";
  tensors[3].name = "optimizer/Adam/m/hidden/kernel";
  tensors[4].name = "Adam/v/hidden/kernel";
  ASSERT_OK_AND_ASSIGN(const ImportMatch match, Match(tensors));
  EXPECT_THAT(match.iterations, Optional(1));
  EXPECT_EQ(match.variables[0].value, 2);
  EXPECT_THAT(match.variables[0].slots, ElementsAre(Optional(3), Optional(4)));
}

TEST(ImportMatchTest, EveryFaultIsNamedAtOnce) {
  std::vector<TensorInfo> tensors = AllTensors();
  tensors[2].shape = {3, 4};
  tensors[5].type = kFloat;
  tensors[8].name = "other/kernel";
  EXPECT_THAT(
      Match(tensors).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("missing: Ftrl/users/rows/linear"),
                     HasSubstr("hidden/kernel is float32 [3, 4], the job's is "
                               "float32 [4, 3]"),
                     HasSubstr("users/ids is float32 [5]"),
                     HasSubstr("too many (--allow_surplus leaves them out): "
                               "other/kernel"))));
}

TEST(ImportMatchTest, SlotsMayBeMissingAllButNotSome) {
  std::vector<TensorInfo> tensors = AllTensors();
  tensors.resize(4);
  tensors.push_back({"users/ids", ElementType::kInt64, {0}});
  tensors.push_back({"users/rows", kFloat, {0, 2}});
  EXPECT_THAT(Match(tensors).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("missing: Adam/hidden/kernel/v, Ftrl/")));
  tensors.erase(tensors.begin() + 3);
  ASSERT_OK_AND_ASSIGN(const ImportMatch match, Match(tensors));
  EXPECT_TRUE(match.lacks_all_slots);
  EXPECT_THAT(match.variables[0].slots,
              ElementsAre(std::nullopt, std::nullopt));
}

TEST(ImportMatchTest, SurplusIsLeftOutIfAllowedAndScalarsAlways) {
  std::vector<TensorInfo> tensors = AllTensors();
  tensors.push_back({"Adam/learning_rate", kFloat, {}});
  tensors.push_back({"dropout/seed_generator_state", ElementType::kOther, {2}});
  EXPECT_OK(Match(tensors));
  tensors.push_back({"other/kernel", kFloat, {7}});
  EXPECT_THAT(Match(tensors), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(Match(tensors, /*allow_surplus=*/true));
}

TEST(ImportMatchTest, NothingAtAllNamesEverything) {
  EXPECT_THAT(Match({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("missing: hidden/kernel, users/ids, "
                                 "users/rows")));
}

}  // namespace
}  // namespace parasol
