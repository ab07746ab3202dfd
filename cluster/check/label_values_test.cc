#include "cluster/check/label_values.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::IsEmpty;

TEST(LabelValuesTest, NamesThatNoValueIsAreNamedWithWhatMayBeMeant) {
  LabelValues values;
  for (const char* value : {"yes", "no", "no", "no"}) values.Add(value);
  job::CsvLabel label;
  label.set_column("bought");
  label.add_positive("yes");
  EXPECT_THAT(values.NeverSeen("train.csv.label", label), IsEmpty());
  label.add_positive("Yes");
  label.add_class_(" no ");
  const auto unseen = values.NeverSeen("train.csv.label", label);
  ASSERT_EQ(unseen.size(), 1);
  EXPECT_EQ(unseen[0].name, "Yes");
  EXPECT_EQ(unseen[0].line,
            "train.csv.label.positive[1]: \"Yes\" is never seen in column "
            "\"bought\", which has \"no\" (75 %), \"yes\" (25 %); did you mean "
            "\"yes\"?");
}

TEST(LabelValuesTest, NothingIsSaidOfMoreValuesThanAreTold) {
  LabelValues values;
  job::CsvLabel label;
  label.add_class_("none");
  EXPECT_THAT(values.NeverSeen("l", label), IsEmpty());  // there are no data
  for (int i = 0; i < 1001; ++i) values.Add(std::to_string(i));
  EXPECT_THAT(values.NeverSeen("l", label), IsEmpty());
}

}  // namespace
}  // namespace parasol
