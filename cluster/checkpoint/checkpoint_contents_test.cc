#include "cluster/checkpoint/checkpoint_contents.h"

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::Job AdamJobWithTables() {
  job::Job job;
  job.mutable_optimizer()->mutable_adam();
  for (const char* name : {"users", "items"}) {
    job::SparseTable& table = *job.mutable_model()->add_sparse_table();
    table.set_name(name);
    table.set_width(3);
  }
  job.mutable_model()
      ->mutable_sparse_table(1)
      ->mutable_optimizer()
      ->mutable_adagrad();
  return job;
}

TEST(CheckpointContents, SlotsAreThoseOfTheOptimizerThatUpdatesThem) {
  ASSERT_OK_AND_ASSIGN(
      const CheckpointContents contents,
      ContentsOf({{.name = "kernel", .shape = {2, 5}},
                  {.name = "moving", .shape = {5}, .trained = false}},
                 AdamJobWithTables()));
  durable::CheckpointManifest manifest;
  contents.AddTo(manifest);

  ASSERT_EQ(manifest.variable_size(), 2);
  EXPECT_THAT(manifest.variable(0).shape(), ElementsAre(2, 5));
  EXPECT_THAT(manifest.variable(0).slot(), ElementsAre("m", "v"));
  EXPECT_THAT(manifest.variable(1).slot(), IsEmpty());
  ASSERT_EQ(manifest.table_size(), 2);
  EXPECT_EQ(manifest.table(0).width(), 3);
  EXPECT_THAT(manifest.table(0).slot(), ElementsAre("m", "v"));
  EXPECT_THAT(manifest.table(1).slot(), ElementsAre("accumulator"));
  EXPECT_THAT(manifest.table(1).slot_width(), IsEmpty());
}

TEST(CheckpointContents, SlotsOfRowsHaveTheirWidths) {
  job::Job job = AdamJobWithTables();
  job::SparseTable& table = *job.mutable_model()->mutable_sparse_table(1);
  table.mutable_optimizer()->mutable_rowwise_adagrad();
  ASSERT_OK_AND_ASSIGN(const CheckpointContents contents, ContentsOf({}, job));
  EXPECT_THAT(contents.tables[1].slot(), ElementsAre("row_accumulator"));
  EXPECT_THAT(contents.tables[1].slot_width(), ElementsAre(1));
  // Of one value it is what other slots are.
  table.set_width(1);
  ASSERT_OK_AND_ASSIGN(const CheckpointContents narrow, ContentsOf({}, job));
  EXPECT_THAT(narrow.tables[1].slot_width(), IsEmpty());
}

TEST(CheckpointContents, AnOptimizerOfRowsIsNoVariables) {
  job::Job job;
  job.mutable_optimizer()->mutable_rowwise_adagrad();
  EXPECT_THAT(ContentsOf({{.name = "kernel", .shape = {2, 5}}}, job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kernel: rowwise_adagrad is for rows")));
}

TEST(CheckpointContents, AnOptimizerThatCantBeUsedIsNamedByItsTable) {
  job::Job job = AdamJobWithTables();
  job.mutable_model()->mutable_sparse_table(1)->mutable_optimizer()->Clear();
  EXPECT_THAT(
      ContentsOf({}, job).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table items")));
}

}  // namespace
}  // namespace parasol
