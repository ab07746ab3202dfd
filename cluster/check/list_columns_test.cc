#include "cluster/check/list_columns.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ListColumnsTest : public testing::Test {
 protected:
  ListColumnsTest() {
    sequence_.set_length(3);
    sequence_.set_separator("|");
    csv_.mutable_csv();
    records_.mutable_tfrecord();
  }

  ListColumns Lists(const job::Dataset& dataset) const {
    return {{{.path = "model.input[0]",
              .column = "seen",
              .is_ids = true,
              .sequence = &sequence_}},
            dataset,
            {"user", "seen"}};
  }
  static ColumnValues RowOf(const std::vector<absl::string_view>& seen) {
    ColumnValues row = {{FieldValue::Text("a|b")}, {}};
    for (const absl::string_view text : seen) {
      row[1].push_back(FieldValue::Text(text));
    }
    return row;
  }

  job::IdSequence sequence_;
  job::Dataset csv_, records_;
};

TEST_F(ListColumnsTest, AListOfALineIsSplit) {
  ListColumns lists = Lists(csv_);
  ColumnValues row = RowOf({"a|b"});
  lists.Take(row);
  EXPECT_THAT(row[0], SizeIs(1)) << "no list";
  ASSERT_THAT(row[1], SizeIs(2));
  char buffer[FieldValue::kMaxNumberBytes];
  EXPECT_EQ(row[1][1].AsText(buffer), "b");
  EXPECT_THAT(lists.Warnings(), IsEmpty());
  ColumnValues values = RowOf({"a|b"});
  Lists(records_).Take(values);
  EXPECT_THAT(values[1], SizeIs(1)) << "a value of a record";
}

TEST_F(ListColumnsTest, EmptyListsAreNamed) {
  ListColumns lists = Lists(csv_);
  EXPECT_THAT(lists.Warnings(), IsEmpty()) << "nothing is known yet";
  ColumnValues row = RowOf({});
  lists.Take(row);
  EXPECT_THAT(lists.Warnings(),
              ElementsAre("model.input[0]: all lists of column \"seen\" are "
                          "empty"));
}

TEST_F(ListColumnsTest, ASeparatorThatNeverComesIsNamed) {
  ListColumns lists = Lists(csv_);
  for (const absl::string_view text : {"a,b", "c"}) {
    ColumnValues row = RowOf({text});
    lists.Take(row);
  }
  EXPECT_THAT(lists.Warnings(),
              ElementsAre(HasSubstr("no value of column \"seen\" has the "
                                    "separator \"|\"")));
}

TEST_F(ListColumnsTest, ManyListsThatAreCutAreNamed) {
  ListColumns lists = Lists(records_);
  for (int i = 0; i < 9; ++i) {
    ColumnValues row = RowOf({"a", "b", "c"});
    lists.Take(row);
  }
  EXPECT_THAT(lists.Warnings(), IsEmpty());
  ColumnValues row = RowOf({"a", "b", "c", "d", "e"});
  lists.Take(row);
  EXPECT_THAT(lists.Warnings(),
              ElementsAre(AllOf(HasSubstr("10 % of the lists"),
                                HasSubstr("more than 3 steps, the longest 5: "
                                          "they lose their first ones"))));
}

}  // namespace
}  // namespace parasol
