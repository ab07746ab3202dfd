#include "storage/shard_writer.h"

#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/testing/checkpoint_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

class ShardWriterTest : public CheckpointFixture {
 protected:
  ShardWriterTest() {
    auto writer = ShardWriter::Create(root() + "/shard.sst");
    EXPECT_OK(writer);
    writer_ = *std::move(writer);
  }

  absl::Status Add(const std::string& variable, int array, int64_t first,
                   size_t count) {
    return writer_->AddElements(variable, array, first, /*updates=*/0,
                                std::vector<float>(count));
  }

  std::unique_ptr<ShardWriter> writer_;
};

TEST_F(ShardWriterTest, RowsAndIdsMustFit) {
  const std::vector<uint64_t> ids = {1, 2};
  EXPECT_THAT(writer_->AddRows("items", {.ids = ids, .rows = {1, 2, 3}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table items: 3 float32 can't be 2 rows")));
  EXPECT_THAT(writer_->AddRows("items", {.rows = {1}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardWriterTest, TablesThatDontAscendAreRefused) {
  ASSERT_OK(writer_->AddRows("users", {}));
  EXPECT_THAT(writer_->AddRows("items", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not in ascending order")));
}

TEST_F(ShardWriterTest, FinishDescribesTheFileThatIsThere) {
  ASSERT_OK(Add("a", 0, 0, 1000));
  ASSERT_OK_AND_ASSIGN(const durable::CheckpointFile file, writer_->Finish());

  const std::string bytes = MustRead(root() + "/shard.sst");
  EXPECT_EQ(file.name(), "shard.sst");
  EXPECT_EQ(file.bytes(), bytes.size());
  EXPECT_EQ(file.crc32c(), Crc32cOf(bytes));
}

TEST_F(ShardWriterTest, AShardWithoutVariablesIsAFile) {
  EXPECT_OK(writer_->Finish());
}

TEST_F(ShardWriterTest, AscendingElementsAreTaken) {
  EXPECT_OK(Add("a", 0, 0, 10));
  EXPECT_OK(Add("a", 0, 10, 10));
  EXPECT_OK(Add("a", 0, 30, 10));
  EXPECT_OK(Add("a", 1, 0, 10));
  EXPECT_OK(Add("b", 0, 5, 10));
}

TEST_F(ShardWriterTest, ElementsThatDontAscendAreRefused) {
  struct Case {
    std::string name;
    std::string variable;
    int array;
    int64_t first;
  };
  const Case cases[] = {{"smaller variable", "a", 1, 20},
                        {"smaller array", "b", 0, 20},
                        {"smaller element", "b", 1, 0},
                        {"the same element", "b", 1, 10},
                        {"overlap", "b", 1, 19}};
  ASSERT_OK(Add("b", 1, 10, 10));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(
        Add(c.variable, c.array, c.first, 1),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shard.sst")));
  }
}

TEST_F(ShardWriterTest, ArraysAndElementsThatCantBeAreRefused) {
  EXPECT_THAT(Add("a", -1, 0, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Add("a", 256, 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Add("a", 0, -1, 1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardWriterTest, DedupComesAfterElementsInAscendingOrder) {
  ASSERT_OK(Add("a", 0, 0, 1));
  EXPECT_OK(writer_->AddDedup(0, 2, {5, "window"}));
  EXPECT_OK(writer_->AddDedup(0, 2, {6, ""}));

  EXPECT_THAT(writer_->AddDedup(0, 2, {6, "again"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Add("b", 0, 0, 1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardWriterTest, RowsOfOneTableHaveOneWidth) {
  const std::vector<uint64_t> ids = {1};
  const std::vector<float> rows(2);
  EXPECT_OK(writer_->AddRows("t", {.ids = ids, .rows = rows}));
  EXPECT_THAT(writer_->AddRows(
                  "t", {.ids = ids, .rows = absl::MakeSpan(rows).first(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("shard.sst: rows of one table have 2 and 1")));
}

TEST_F(ShardWriterTest, ADirectoryThatIsMissingIsNotFound) {
  EXPECT_THAT(
      ShardWriter::Create(root() + "/none/shard.sst"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/shard.sst")));
}

}  // namespace
}  // namespace parasol
